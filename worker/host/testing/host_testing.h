// For tests of worker/host: a coordinator made of answers written beforehand.
#ifndef LONGHAUL_WORKER_HOST_TESTING_HOST_TESTING_H_
#define LONGHAUL_WORKER_HOST_TESTING_HOST_TESTING_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_copy.h"
#include "base/testing/test_folder.h"
#include "gtest/gtest.h"
#include "run/run_spec.h"
#include "worker/host/messages.h"
#include "worker/host/remote.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {

// How long a test waits for another thread before it fails.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// An empty folder of the running test, removed at the end.
class TestFolder : public longhaul::TestFolder {
 public:
  TestFolder()
      : longhaul::TestFolder(absl::StrCat(
            "host-", testing::UnitTest::GetInstance()->current_test_info()->test_suite_name(), "-",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {}
};

// A valid run of a model with four blocks over bytes.
inline run::RunSpec TestSpec(const std::string& name, bool tied = true) {
  run::RunSpec spec;
  spec.name = name;
  spec.model = {"gpt2",        /*layers=*/4,  /*hidden=*/8, /*heads=*/2,
                /*context=*/8, /*vocab=*/256, tied};
  spec.data.train = "text";
  spec.data.id = std::string(64, 'a');
  spec.data.tokens = 1000;
  spec.train.steps = 6;
  spec.train.global_batch = 6;
  spec.train.micro_batch = 2;
  return spec;
}

// Of a pipeline whose stages end at `ends`, for one stage.
inline Assignment TestAssignment(const run::RunSpec& spec, const std::vector<int>& ends,
                                 int stage = 0) {
  Assignment assignment;
  assignment.run = spec.name;
  assignment.epoch = {1, 1};
  assignment.token = "token";
  assignment.spec = spec;
  assignment.stage = stage;
  int begin = 0;
  for (const int end : ends) {
    const std::string node = absl::StrCat("node-", assignment.stages.size());
    assignment.stages.push_back({node, absl::StrCat("memory:", node), {begin, end}});
    begin = end;
  }
  assignment.link_codecs.resize(assignment.stages.size() - 1, "none");
  return assignment;
}

// Of run "r".
inline StepReport TestReport(int64_t step, const Epoch& epoch) {
  StepReport report;
  report.run = "r";
  report.epoch = epoch;
  report.step = step;
  return report;
}

// "report 5 of run 1.2", "stored 4 of run 1.2", "failed of run 1.2: why".
inline std::string ToText(const ToCoordinator& message) {
  const auto place = [](const auto& m) {
    return absl::StrCat(" of ", m.run, " ", ToString(m.epoch));
  };
  struct Visitor {
    decltype(place) at;
    std::string operator()(const Register&) const { return "register"; }
    std::string operator()(const Heartbeat&) const { return "heartbeat"; }
    std::string operator()(const Preparing& m) const { return "preparing" + at(m); }
    std::string operator()(const Ready& m) const { return "ready" + at(m); }
    std::string operator()(const StepReport& m) const {
      return absl::StrCat("report ", m.step, at(m));
    }
    std::string operator()(const ShardStored& m) const {
      return absl::StrCat("stored ", m.step, at(m));
    }
    std::string operator()(const ShardFailed& m) const {
      return absl::StrCat("not stored ", m.step, at(m), ": ", m.status.message());
    }
    std::string operator()(const Ended& m) const { return absl::StrCat("ended ", m.step, at(m)); }
    std::string operator()(const Failed& m) const {
      return absl::StrCat("failed", at(m), ": ", m.status.message());
    }
  };
  return std::visit(Visitor{place}, message);
}

// Records what is sent; refuses when told to.
class FakeControl : public ControlLink {
 public:
  bool Send(const ToCoordinator& message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (room_ == 0) return false;
    if (room_ > 0) --room_;
    sent_.push_back(message);
    if (auto* failed = std::get_if<Failed>(&sent_.back())) failed->status = OwnCopy(failed->status);
    changed_.notify_all();
    return true;
  }
  // Messages taken from now on; negative: any number.
  void SetRoom(int room) {
    std::lock_guard<std::mutex> lock(mutex_);
    room_ = room;
  }
  // Waits for the first message of a type since the last Take; calls `meanwhile` again and again.
  template <typename Message>
  Message WaitFor(const std::function<void()>& meanwhile = [] {}) {
    const absl::Time deadline = RealClock().Now() + kPatience;
    std::unique_lock<std::mutex> lock(mutex_);
    while (RealClock().Now() < deadline) {
      for (const ToCoordinator& message : sent_) {
        if (const auto* found = std::get_if<Message>(&message)) return *found;
      }
      lock.unlock();
      meanwhile();
      lock.lock();
      const size_t seen = sent_.size();
      RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Milliseconds(1),
                            [&] { return sent_.size() > seen; });
    }
    ADD_FAILURE() << "a message did not come";
    return {};
  }
  std::vector<ToCoordinator> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(sent_, {});
  }
  std::vector<std::string> TakeTexts() {
    std::vector<std::string> texts;
    for (const ToCoordinator& message : Take()) texts.push_back(ToText(message));
    return texts;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int room_ = -1;  // guarded by mutex_, as all below
  std::vector<ToCoordinator> sent_;
};

// Serves what a test put there. Fetches are not held up; views are cancelled by themselves.
class FakeRemote : public RemoteStore {
 public:
  absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string&, absl::Time) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++index_fetches_;
    if (!index_status_.ok()) return OwnCopy(index_status_);
    return index_;
  }
  absl::StatusOr<std::string> FetchChunk(const std::string&, uint64_t chunk,
                                         absl::Time deadline) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (fetch_chunk_) fetch_chunk_(deadline);
    return data_.substr(chunk * data::kChunkBytes, data::kChunkBytes);
  }
  absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t, absl::Time) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++shard_fetches_;
    if (fetch_shard_) fetch_shard_();
    if (!fetch_answers_.empty()) {
      const absl::Status answer = OwnCopy(fetch_answers_.front());
      fetch_answers_.pop_front();
      if (!answer.ok()) return answer;
    }
    const auto found = shards_.find(sha256);
    if (found == shards_.end()) return absl::NotFoundError(absl::StrCat("no shard ", sha256));
    return found->second;
  }
  absl::Status StoreShard(const std::string& sha256, absl::string_view bytes,
                          absl::Time deadline) override {
    return Store(sha256, bytes, deadline, cancelled_);
  }
  void Cancel() override { Set(cancelled_); }
  std::unique_ptr<RemoteStore> MakeView() override { return std::make_unique<View>(*this); }

  void SetData(const data::DatasetIndex& index, const std::string& bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    index_ = index;
    data_ = bytes;
  }
  // Called in every fetch of a chunk with its deadline.
  void OnFetchChunk(std::function<void(absl::Time)> fetch_chunk) {
    std::lock_guard<std::mutex> lock(mutex_);
    fetch_chunk_ = std::move(fetch_chunk);
  }
  // Called in every fetch of a shard.
  void OnFetchShard(std::function<void()> fetch_shard) {
    std::lock_guard<std::mutex> lock(mutex_);
    fetch_shard_ = std::move(fetch_shard);
  }
  void SetIndexStatus(const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    index_status_ = OwnCopy(status);
  }
  void SetShard(const std::string& sha256, const std::string& bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    shards_[sha256] = bytes;
  }
  // The answers of the next fetches of shards; then all succeed.
  void AnswerFetches(const std::vector<absl::Status>& answers) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const absl::Status& answer : answers) fetch_answers_.push_back(OwnCopy(answer));
  }
  // The answers of the next stores; then all succeed.
  void AnswerStores(const std::vector<absl::Status>& answers) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const absl::Status& answer : answers) store_answers_.push_back(OwnCopy(answer));
  }
  // While held, stores do not return.
  void HoldStores(bool held) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  // Waits until that many stores have begun since the start; calls `meanwhile` again and again.
  void WaitForStores(int count, const std::function<void()>& meanwhile) {
    const absl::Time deadline = RealClock().Now() + kPatience;
    std::unique_lock<std::mutex> lock(mutex_);
    while (stores_begun_ < count) {
      ASSERT_LT(RealClock().Now(), deadline) << "store " << count << " did not begin";
      lock.unlock();
      meanwhile();
      lock.lock();
      RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Milliseconds(1),
                            [&] { return stores_begun_ >= count; });
    }
  }

  int stores_begun() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return stores_begun_;
  }
  int index_fetches() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return index_fetches_;
  }
  int shard_fetches() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return shard_fetches_;
  }
  absl::Time store_deadline() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return store_deadline_;
  }
  std::map<std::string, std::string> shards() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return shards_;
  }

 private:
  class View : public RemoteStore {
   public:
    explicit View(FakeRemote& store) : store_(store) {}
    absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string& dataset,
                                                  absl::Time deadline) override {
      return store_.FetchIndex(dataset, deadline);
    }
    absl::StatusOr<std::string> FetchChunk(const std::string& dataset, uint64_t chunk,
                                           absl::Time deadline) override {
      return store_.FetchChunk(dataset, chunk, deadline);
    }
    absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t bytes_max,
                                           absl::Time deadline) override {
      return store_.FetchShard(sha256, bytes_max, deadline);
    }
    absl::Status StoreShard(const std::string& sha256, absl::string_view bytes,
                            absl::Time deadline) override {
      return store_.Store(sha256, bytes, deadline, cancelled_);
    }
    void Cancel() override { store_.Set(cancelled_); }
    std::unique_ptr<RemoteStore> MakeView() override { return store_.MakeView(); }

   private:
    FakeRemote& store_;
    bool cancelled_ = false;  // guarded by the store's mutex_
  };

  absl::Status Store(const std::string& sha256, absl::string_view bytes, absl::Time deadline,
                     const bool& cancelled) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++stores_begun_;
    store_deadline_ = deadline;
    changed_.notify_all();
    RealClock().WaitUntil(lock, changed_, RealClock().Now() + kPatience,
                          [&] { return !held_ || cancelled; });
    if (cancelled) return absl::CancelledError("the worker leaves");
    if (!store_answers_.empty()) {
      const absl::Status answer = OwnCopy(store_answers_.front());
      store_answers_.pop_front();
      if (!answer.ok()) return answer;
    }
    shards_[sha256] = std::string(bytes);
    return absl::OkStatus();
  }
  void Set(bool& cancelled) {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  data::DatasetIndex index_;
  std::string data_;
  std::function<void(absl::Time)> fetch_chunk_;
  std::function<void()> fetch_shard_;
  absl::Status index_status_;
  std::map<std::string, std::string> shards_;
  std::deque<absl::Status> fetch_answers_, store_answers_;
  absl::Time store_deadline_;
  bool held_ = false;
  bool cancelled_ = false;
  int stores_begun_ = 0;
  int index_fetches_ = 0;
  int shard_fetches_ = 0;
};

// What a host under test is made with; all outlive it. Its log is not kept.
inline WorkerHostDependencies TestDependencies(Clock& clock, ControlLink& control,
                                               RemoteStore& remote, Transport& transport,
                                               ExchangeRouter& router) {
  WorkerHostDependencies dependencies;
  dependencies.clock = &clock;
  dependencies.control = &control;
  dependencies.remote = &remote;
  dependencies.transport = &transport;
  dependencies.router = &router;
  dependencies.make_backend = [] { return compute::MakeCpuBackend(1); };
  dependencies.log = [](LogLevel, const std::string&) {};
  return dependencies;
}

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_TESTING_HOST_TESTING_H_
