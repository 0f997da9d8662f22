// For tests of the host: a journal that fails when told, and a sink that remembers.
#ifndef LONGHAUL_COORDINATOR_HOST_TESTING_HOST_TESTING_H_
#define LONGHAUL_COORDINATOR_HOST_TESTING_HOST_TESTING_H_

#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_copy.h"
#include "coordinator/host/coordinator_host.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {

// Whether it becomes so within half a minute of real time, whatever a fake clock says.
inline bool BecomesTrue(const std::function<bool()>& is_so) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock<std::mutex> lock(mutex);
  const absl::Time deadline = RealClock().Now() + absl::Seconds(30);
  while (!is_so()) {
    if (RealClock().Now() >= deadline) return false;
    RealClock().WaitUntil(lock, never, RealClock().Now() + absl::Milliseconds(1),
                          [] { return false; });
  }
  return true;
}

// An empty folder of this test, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = absl::StrCat(testing::TempDir(), "/longhaul_host_", getpid(), "_", test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

// Records live as long as the object; writes fail with `failure` while it is not OK.
class MemoryJournal : public Journal {
 public:
  absl::StatusOr<JournalContents> Load() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    JournalContents contents;
    for (const auto& [name, node] : nodes_) contents.nodes.push_back(node);
    for (const auto& [name, run] : runs_) contents.runs.push_back(run);
    return contents;
  }
  absl::Status Write(const std::vector<const NodeRecord*>& nodes,
                     const std::vector<const RunRecord*>& runs) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return OwnCopy(failure_);
    for (const NodeRecord* node : nodes) nodes_[node->facts.profile.name] = *node;
    for (const RunRecord* run : runs) runs_[run->spec.name] = *run;
    return absl::OkStatus();
  }
  void SetFailure(const absl::Status& failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = OwnCopy(failure);
  }

 private:
  std::mutex mutex_;
  absl::Status failure_;
  std::map<std::string, NodeRecord> nodes_;
  std::map<std::string, RunRecord> runs_;
};

// Another store whose every write takes one of `writes`, or waits for it.
class GatedMetrics : public MetricsStore {
 public:
  GatedMetrics(std::unique_ptr<MetricsStore> store, std::counting_semaphore<>& writes)
      : store_(std::move(store)), writes_(writes) {}

  absl::Status Record(const std::vector<control::StepReport>& reports) override {
    writes_.acquire();
    return store_->Record(reports);
  }
  absl::StatusOr<std::vector<CompletedStep>> CompletedSteps(const std::string& run, int64_t after,
                                                            int limit) override {
    return store_->CompletedSteps(run, after, limit);
  }
  absl::StatusOr<std::vector<control::StepReport>> NewestReports(const std::string& run,
                                                                 const Epoch& epoch,
                                                                 int64_t after) override {
    return store_->NewestReports(run, epoch, after);
  }
  absl::StatusOr<RunFigures> Figures(const std::string& run, int64_t step) override {
    return store_->Figures(run, step);
  }

 private:
  const std::unique_ptr<MetricsStore> store_;
  std::counting_semaphore<>& writes_;
};

// Keeps every message of every session; tests wait for what they expect.
class RecordingSink : public SessionSink {
 public:
  void Send(uint64_t session, control::ToWorker message) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    messages_.emplace_back(session, std::move(message));
    changed_.notify_all();
  }

  // The first message of type M to `session` that was not taken yet.
  template <typename M>
  M Take(uint64_t session) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto find = [&] {
      for (auto it = messages_.begin(); it != messages_.end(); ++it) {
        if (it->first == session && std::holds_alternative<M>(it->second)) return it;
      }
      return messages_.end();
    };
    const bool came = RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Seconds(30),
                                            [&] { return find() != messages_.end(); });
    if (!came) {
      ADD_FAILURE() << "a message to session " << session << " did not come";
      return M();
    }
    const auto found = find();
    M message = std::get<M>(std::move(found->second));
    messages_.erase(found);
    return message;
  }

  size_t CountOf(uint64_t session) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (const auto& [to, message] : messages_) count += to == session;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<uint64_t, control::ToWorker>> messages_;
};

// Takes every manifest, or refuses with `failure`.
class FakeCheckpoints : public Checkpoints {
 public:
  absl::Status StoreShard(absl::string_view, absl::string_view) override {
    return absl::OkStatus();
  }
  absl::Status Commit(const checkpoint::Manifest& manifest, const run::RunSpec& spec) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return OwnCopy(failure_);
    manifests_.push_back(manifest);
    return absl::OkStatus();
  }
  void Prune(const std::string&, int64_t) override {}
  void Drop(const std::string&, const std::vector<std::string>&) override {}
  void SetFailure(const absl::Status& failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = OwnCopy(failure);
  }

 private:
  std::mutex mutex_;
  absl::Status failure_;
  std::vector<checkpoint::Manifest> manifests_;
};

// A plan of one stage on each node.
inline absl::StatusOr<Plan> PlanOnAll(const PlanRequest& request) {
  Plan plan;
  plan.schedule = "1f1b";
  plan.numeric_classes = {"class-a"};
  int op = 0;
  for (const NodeProfile& node : request.nodes) {
    StagePlacement& stage = plan.stages.emplace_back();
    stage.node = node.name;
    stage.range = {op, op + 1};
    stage.slots = 2;
    ++op;
  }
  plan.link_codecs.assign(plan.stages.size() - 1, "none");
  return plan;
}

inline run::RunSpec SmallRun(const std::string& name = "first") {
  run::RunSpec spec;
  spec.name = name;
  spec.model = {"gpt2", 2, 8, 2, 4, 16, true};
  spec.data.train = "x.txt";
  spec.data.id = std::string(64, 'a');
  spec.data.tokens = 1000;
  spec.train.steps = 3;
  spec.train.global_batch = 4;
  spec.train.micro_batch = 2;
  return spec;
}

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_TESTING_HOST_TESTING_H_
