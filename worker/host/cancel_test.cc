// A stage that is told to leave lets go of the transfers it waits for.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/in_process_transport.h"
#include "worker/host/testing/host_testing.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {
namespace {

// Counts the transfers that began; none ends before it is cancelled.
class Stuck {
 public:
  void Begin() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++begun_;
    changed_.notify_all();
  }
  bool WaitForBegun(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return RealClock().WaitUntil(lock, changed_, RealClock().Now() + absl::Seconds(30),
                                 [&] { return begun_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;  // guarded by mutex_
};

class StuckRemote : public RemoteStore {
 public:
  explicit StuckRemote(Stuck& stuck) : stuck_(stuck) {}

  absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string&, absl::Time) override {
    return Transfer();
  }
  absl::StatusOr<std::string> FetchChunk(const std::string&, uint64_t, absl::Time) override {
    return Transfer();
  }
  absl::StatusOr<std::string> FetchShard(const std::string&, uint64_t, absl::Time) override {
    return Transfer();
  }
  absl::Status StoreShard(const std::string&, absl::string_view, absl::Time) override {
    return Transfer();
  }
  void Cancel() override {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  std::unique_ptr<RemoteStore> MakeView() override { return std::make_unique<StuckRemote>(stuck_); }

 private:
  absl::Status Transfer() {
    stuck_.Begin();
    std::unique_lock<std::mutex> lock(mutex_);
    RealClock().WaitUntil(lock, changed_, absl::InfiniteFuture(), [this] { return cancelled_; });
    return absl::CancelledError("the transfer was cancelled");
  }

  Stuck& stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;  // guarded by mutex_
};

// The only stage of a run whose data set this node does not have.
Assignment OnlyStage(const Epoch& epoch) {
  const run::RunSpec spec = TestSpec("r");
  const int ops = static_cast<int>(model::BuildGraph(spec.model)->ops.size());
  Assignment assignment = TestAssignment(spec, {ops});
  assignment.epoch = epoch;
  return assignment;
}

TEST(Cancel, ASuccessorDoesNotWaitForTheTransfersOfAStageThatLeft) {
  Stuck stuck;
  StuckRemote remote(stuck);
  FakeControl control;
  TestFolder folder;
  InProcessNetwork network(RealClock());
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  ExchangeRouter router(RealClock());
  WorkerHostOptions options;
  options.folder = folder.path();
  WorkerHost host(options, TestDependencies(RealClock(), control, remote, *transport, router));

  host.OnMessage(OnlyStage({1, 1}));
  ASSERT_TRUE(stuck.WaitForBegun(1));
  host.OnMessage(Abort{"r", {1, 1}, "a node was lost"});
  host.OnMessage(OnlyStage({1, 2}));
  ASSERT_TRUE(stuck.WaitForBegun(2)) << "the aborted stage's transfer was not cancelled";
  host.OnMessage(OnlyStage({1, 3}));  // replaces without an abort
  EXPECT_TRUE(stuck.WaitForBegun(3)) << "the replaced stage's transfer was not cancelled";
}

}  // namespace
}  // namespace longhaul::worker
