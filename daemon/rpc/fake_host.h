// For tests of the admin server: a coordinator's host that the test plays.
#ifndef LONGHAUL_DAEMON_RPC_FAKE_HOST_H_
#define LONGHAUL_DAEMON_RPC_FAKE_HOST_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "coordinator/host/coordinator_host.h"
#include "model/family.h"
#include "run/test_spec.h"

namespace longhaul::daemon {

// Steps that the test completes one by one. Thread-safe.
class FakeMetrics : public coordinator::MetricsStore {
 public:
  absl::Status Record(const std::vector<control::StepReport>&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<coordinator::CompletedStep>> CompletedSteps(const std::string&,
                                                                         int64_t after,
                                                                         int limit) override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<coordinator::CompletedStep> steps;
    for (int64_t s = after + 1; s <= newest_ && static_cast<int>(steps.size()) < limit; ++s) {
      coordinator::CompletedStep& step = steps.emplace_back();
      step.step = s;
      step.loss = 10.0 / static_cast<double>(s);
      step.tokens = 512;
      step.seconds = 0.5;
    }
    return steps;
  }
  absl::StatusOr<std::vector<control::StepReport>> NewestReports(const std::string&,
                                                                 const Epoch& epoch,
                                                                 int64_t) override {
    control::StepReport report;
    report.epoch = epoch;
    report.stage = 1;
    report.step = 9;
    report.total_seconds = 2;
    return std::vector<control::StepReport>{report};
  }
  absl::StatusOr<coordinator::RunFigures> Figures(const std::string&, int64_t) override {
    std::lock_guard<std::mutex> lock(mutex_);
    coordinator::RunFigures figures;
    figures.step_epoch = {1, 2};
    figures.step_seconds = 2;
    figures.step = newest_;
    figures.newest_step = reached_ > 0 ? reached_ : newest_;
    figures.newest_epoch = {1, 1};
    figures.tokens_per_second = 1000;
    return figures;
  }
  void Complete(int64_t newest) {
    std::lock_guard<std::mutex> lock(mutex_);
    newest_ = newest;
  }
  // In an older epoch.
  void Reach(int64_t step) {
    std::lock_guard<std::mutex> lock(mutex_);
    reached_ = step;
  }

 private:
  std::mutex mutex_;
  int64_t newest_ = 0;   // guarded by mutex_
  int64_t reached_ = 0;  // guarded by mutex_; 0: no further than newest_
};

// Writes down what is asked of it.
class FakeCheckpoints : public coordinator::Checkpoints {
 public:
  absl::Status StoreShard(absl::string_view, absl::string_view) override {
    return absl::UnimplementedError("no shard comes this way");
  }
  absl::Status Commit(const checkpoint::Manifest& manifest, const run::RunSpec&) override {
    calls.push_back(absl::StrCat("commit ", manifest.run, " ", manifest.step));
    return absl::OkStatus();
  }
  void Prune(const std::string& run, int64_t before_step) override {
    calls.push_back(absl::StrCat("prune ", run, " ", before_step));
  }
  void Drop(const std::string& run, const std::vector<std::string>&) override {
    calls.push_back(absl::StrCat("drop of ", run));
  }
  std::vector<std::string> calls;
};

// Holds a state that the test changes; answers requests with their own words.
class FakeHost : public coordinator::CoordinatorHost {
 public:
  void Stop() override {}
  uint64_t NewSession() override { return 1; }
  bool Post(coordinator::Event) override { return true; }
  absl::StatusOr<std::string> Request(PersonEvent event, absl::Time) override {
    if (const auto* start = std::get_if<coordinator::StartRun>(&event)) {
      if (start->spec.name == "refused") return absl::FailedPreconditionError("no worker");
      return absl::StrCat("started ", start->spec.name,
                          start->checkpoint.has_value() ? " with its weights" : "");
    }
    if (const auto* stop = std::get_if<coordinator::StopRun>(&event)) {
      return absl::StrCat("stopping ", stop->run);
    }
    if (const auto* resume = std::get_if<coordinator::ResumeRun>(&event)) {
      return absl::StrCat("resuming ", resume->run, " with ", resume->stages, " from ",
                          resume->step.value_or(-1));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("cannot drain ", std::get<coordinator::DrainNode>(event).node));
  }
  Pulse pulse() const override { return {RealClock().Now()}; }
  coordinator::State Snapshot() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }
  coordinator::State SnapshotRun(const std::string&) const override { return Snapshot(); }
  uint64_t version() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return version_;
  }
  uint64_t WaitForChange(uint64_t seen, absl::Time deadline) override {
    std::unique_lock<std::mutex> lock(mutex_);
    RealClock().WaitUntil(lock, changed_, deadline, [&] { return version_ != seen; });
    return version_;
  }
  coordinator::MetricsStore& metrics() override { return metrics_; }
  coordinator::Checkpoints& checkpoints() override { return committed; }
  FakeCheckpoints committed;
  absl::Status health() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return health_;
  }
  void SetHealth(const absl::Status& health) {
    std::lock_guard<std::mutex> lock(mutex_);
    health_ = health;
  }
  void SetCheckpoints(const checkpoint::Manifest& newest,
                      const std::vector<coordinator::OtherCheckpoint>& others) {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.runs["first"].checkpoint = newest;
    state_.runs["first"].other_checkpoints = others;
  }
  void SetReason(const std::string& reason, const std::string& checkpoint_problem) {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.runs["first"].reason = reason;
    state_.runs["first"].checkpoint_problem = checkpoint_problem;
  }
  void Reach(int64_t step) { metrics_.Reach(step); }
  // After Set: its two groups are replicas of one stage.
  void MakeReplicas() {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.runs["first"].plan->stages[1].replica = 1;
  }
  // As one change.
  void Set(coordinator::RunState run_state, int64_t completed) {
    std::lock_guard<std::mutex> lock(mutex_);
    metrics_.Complete(completed);
    coordinator::RunRecord& run = state_.runs["first"];
    run.spec = run::ExampleSpec();
    run.progress.assign(2, {.step = completed});
    run.state = run_state;
    run.epoch = {1, 2};
    run.plan.emplace();
    run.plan->stages.resize(2);
    run.plan->stages[0].node = "b1";
    run.plan->stages[1].node = "b2";  // the loss alone
    const int ops = static_cast<int>(model::BuildGraph(run.spec.model)->ops.size());
    run.plan->stages[0].range = {0, ops - 1};
    run.plan->stages[1].range = {ops - 1, ops};
    run.plan->step_seconds = 0.25;
    coordinator::NodeRecord& node = state_.nodes["b2"];
    node.facts.profile.name = "b2";
    node.facts.profile.site = "berlin";
    node.state = coordinator::NodeState::kConnected;
    ++version_;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  coordinator::State state_;  // guarded by mutex_
  uint64_t version_ = 0;      // guarded by mutex_
  absl::Status health_;       // guarded by mutex_
  FakeMetrics metrics_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_FAKE_HOST_H_
