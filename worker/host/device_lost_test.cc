// A device that is of no more use: the run is told why, and so is the host's owner.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "compute/backend/cpu/cpu_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/comm/testing/in_process_transport.h"
#include "worker/host/testing/host_testing.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Its first wait finds what a card finds whose kernel failed, and so does every later one.
class BrokenBackend : public compute::CpuBackend {
 public:
  BrokenBackend() : CpuBackend(1, uint64_t{1} << 30) {}
  absl::Status Synchronize() override { return absl::UnavailableError("card 0: a kernel failed"); }
};

class DeviceLostTest : public testing::Test {
 protected:
  DeviceLostTest() {
    const std::string text(4096, 'x');
    EXPECT_TRUE(WriteFileAtomically(folder_.path() + "/text", text).ok());
    const data::DatasetIndex index = *data::IndexFile(folder_.path() + "/text");
    remote_.SetData(index, text);
    run::RunSpec spec = TestSpec("r");
    spec.data.id = index.Id();
    spec.data.tokens = static_cast<int64_t>(index.bytes);
    assignment_ =
        TestAssignment(spec, {static_cast<int>(model::BuildGraph(spec.model)->ops.size())});
    assignment_.epoch = {1, 1};
  }

  // A host with the only stage of a run, that is assigned.
  void Assign(bool broken) {
    WorkerHostDependencies dependencies =
        TestDependencies(RealClock(), control_, remote_, *transport_, router_);
    if (broken) dependencies.make_backend = [] { return std::make_unique<BrokenBackend>(); };
    dependencies.on_device_lost = [this](const absl::Status& reason) {
      std::lock_guard<std::mutex> lock(mutex_);
      lost_ = OwnCopy(reason);
      changed_.notify_all();
    };
    WorkerHostOptions options;
    options.facts.name = "node";
    options.folder = folder_.path() + "/node";
    host_ = std::make_unique<WorkerHost>(options, std::move(dependencies));
    host_->MakeRegister();
    host_->OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
    host_->OnMessage(assignment_);
  }

  TestFolder folder_;
  FakeControl control_;
  FakeRemote remote_;
  Assignment assignment_;
  InProcessNetwork network_{RealClock()};
  const std::unique_ptr<Transport> transport_ = network_.MakeTransport();
  ExchangeRouter router_{RealClock()};
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status lost_;  // guarded by mutex_
  std::unique_ptr<WorkerHost> host_;
};

TEST_F(DeviceLostTest, TheRunHearsOfItFirst) {
  Assign(true);
  const Failed failed = control_.WaitFor<Failed>([this] {
    host_->OnMessage(worker::Start{"r", {1, 1}, {}});
  });
  EXPECT_EQ(failed.run, "r");
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("card 0: a kernel failed"));
  std::unique_lock<std::mutex> lock(mutex_);
  EXPECT_TRUE(RealClock().WaitUntil(lock, changed_, RealClock().Now() + kPatience,
                                    [this] { return !lost_.ok(); }));
  EXPECT_EQ(lost_, absl::UnavailableError("card 0: a kernel failed"));
}

TEST_F(DeviceLostTest, AStageFailsForAReasonFromOutside) {
  Assign(false);
  control_.WaitFor<Ready>();
  host_->FailStage(absl::UnavailableError("cuda:0: the card is lost"));
  EXPECT_EQ(control_.WaitFor<Failed>().status, absl::UnavailableError("cuda:0: the card is lost"));
  host_.reset();
  EXPECT_TRUE(lost_.ok()) << "who told it knows";
}

TEST_F(DeviceLostTest, AnIdleHostHasNothingToFail) {
  Assign(false);
  control_.WaitFor<Ready>();
  host_->OnMessage(Abort{"r", {1, 1}, "stopped"});
  host_->FailStage(absl::UnavailableError("cuda:0: the card is lost"));
  host_.reset();
  for (const std::string& text : control_.TakeTexts()) EXPECT_THAT(text, Not(HasSubstr("failed")));
}

}  // namespace
}  // namespace longhaul::worker
