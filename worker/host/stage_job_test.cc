// How a stage gets ready: where its data comes from, and what is said of it meanwhile.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/comm/testing/in_process_transport.h"
#include "worker/host/testing/host_testing.h"
#include "worker/host/worker_host.h"

namespace longhaul::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// Each look at it takes a second.
class SlowClock : public Clock {
 public:
  absl::Time Now() const override {
    clock_.Advance(absl::Seconds(1));
    return clock_.Now();
  }
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 absl::Time deadline, absl::FunctionRef<bool()> condition) override {
    return clock_.WaitUntil(lock, changed, deadline, condition);
  }

 private:
  mutable FakeClock clock_;
};

// A node, and a run of one stage over a text of some chunks.
class StageJobTest : public testing::Test {
 protected:
  void Start(Clock& clock, size_t text_bytes) {
    text_ = std::string(text_bytes, 'x');
    ASSERT_TRUE(WriteFileAtomically(folder_.path() + "/text", text_).ok());
    index_ = *data::IndexFile(folder_.path() + "/text");
    remote_.SetData(index_, text_);
    spec_.data.id = index_.Id();
    spec_.data.tokens = static_cast<int64_t>(index_.bytes);
    network_ = std::make_unique<InProcessNetwork>(clock);
    transport_ = network_->MakeTransport();
    router_ = std::make_unique<ExchangeRouter>(clock);
    WorkerHostOptions options;
    options.facts.name = "node";
    options.folder = folder_.path() + "/node";
    options.transfer_max = absl::Minutes(10);
    host_ = std::make_unique<WorkerHost>(
        options, TestDependencies(clock, control_, remote_, *transport_, *router_));
    host_->MakeRegister();
    host_->OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
  }
  Assignment Make(uint32_t epoch) const {
    const int ops = static_cast<int>(model::BuildGraph(spec_.model)->ops.size());
    Assignment assignment = TestAssignment(spec_, {ops});
    assignment.epoch = {1, epoch};
    return assignment;
  }
  void AssignAndAwaitReady(uint32_t epoch) {
    control_.Take();
    host_->OnMessage(Make(epoch));
    control_.WaitFor<Ready>();
  }
  std::string DataPath() const {
    return absl::StrCat(folder_.path(), "/node/data/", index_.Id(), ".data");
  }

  TestFolder folder_;
  FakeControl control_;
  FakeRemote remote_;
  std::string text_;
  data::DatasetIndex index_;
  run::RunSpec spec_ = TestSpec("r");
  std::unique_ptr<InProcessNetwork> network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ExchangeRouter> router_;
  std::unique_ptr<WorkerHost> host_;
};

TEST_F(StageJobTest, EachChunkMayTakeTheLongestTimeOfATransfer) {
  FakeClock clock;
  Start(clock, 2 * data::kChunkBytes + 1000);
  std::vector<absl::Duration> left;
  remote_.OnFetchChunk([&](absl::Time deadline) {
    left.push_back(deadline - clock.Now());
    clock.Advance(absl::Minutes(9));
  });
  AssignAndAwaitReady(1);
  EXPECT_THAT(left, ElementsAre(absl::Minutes(10), absl::Minutes(10), absl::Minutes(10)));
  // The coordinator hears that it goes on.
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("preparing of r 1.1", "preparing of r 1.1",
                                                "preparing of r 1.1", "ready of r 1.1"));
  host_.reset();
}

TEST_F(StageJobTest, SaysThatItGoesOnWhileItHashesWhatIsHereAndHashesItOnce) {
  SlowClock clock;
  Start(clock, 12 * data::kChunkBytes);
  const absl::Status filled =
      data::DatasetStore(folder_.path() + "/node/data").Fill(index_, [&](uint64_t) {
        return text_.substr(0, data::kChunkBytes);
      });
  ASSERT_TRUE(filled.ok()) << filled;
  AssignAndAwaitReady(1);
  EXPECT_THAT(control_.TakeTexts(),
              ElementsAre("preparing of r 1.1", "preparing of r 1.1", "ready of r 1.1"));
  AssignAndAwaitReady(2);
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("ready of r 1.2"));
  EXPECT_EQ(remote_.index_fetches(), 0);
  host_.reset();
}

// The length of a data set says nothing about its bytes.
TEST_F(StageJobTest, DataThatRottedHereIsFetchedAgain) {
  FakeClock clock;
  Start(clock, 2 * data::kChunkBytes + 1000);
  AssignAndAwaitReady(1);
  std::string rotten = text_;
  rotten[data::kChunkBytes + 5] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(DataPath(), rotten).ok());
  int fetched = 0;
  remote_.OnFetchChunk([&](absl::Time) { ++fetched; });
  AssignAndAwaitReady(2);
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(*ReadFile(DataPath(), text_.size()), text_);
  // What is sound is not asked for at all.
  remote_.SetIndexStatus(absl::PermissionDeniedError("not for this node"));
  AssignAndAwaitReady(3);
  EXPECT_EQ(fetched, 1);
  host_.reset();
}

TEST_F(StageJobTest, HasTheNameThatItsPlanGivesIt) {
  FakeClock clock;
  Start(clock, 1000);
  Assignment assignment = Make(1);
  assignment.stages.push_back(assignment.stages.front());
  assignment.stages[1].replica = 1;
  assignment.stages[0].micro_batches = 2;
  assignment.stages[1].micro_batches = 1;
  // Refused, since this node does not trust its network.
  host_->OnMessage(assignment);
  control_.WaitFor<Failed>();
  EXPECT_THAT(host_->Describe(), StartsWith("run r stage 0 replica 0 step 0"));
  host_.reset();
}

}  // namespace
}  // namespace longhaul::worker
