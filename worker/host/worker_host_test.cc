// The worker's life as the coordinator sees it, with one stage; tests/sim has whole pipelines.
#include "worker/host/worker_host.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "compute/backend/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/comm/testing/in_process_transport.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Epoch kFirst{1, 1};
constexpr Epoch kSecond{1, 2};

class WorkerHostTest : public testing::Test {
 protected:
  WorkerHostTest() {
    std::string text;
    for (int i = 0; text.size() < 1000; ++i) absl::StrAppend(&text, i * i % 89, " ");
    text.resize(1000);
    const std::string path = folder_.path() + "/text";
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    index_ = *data::IndexFile(path);
    remote_.SetData(index_, text);
    network_.Listen("memory:a", &router_);
    StartHost("node");
  }
  ~WorkerHostTest() override {
    host_.reset();
    network_.Stop("memory:a");
  }

  // A worker with an empty folder of its own, accepted by the coordinator.
  void StartHost(const std::string& name) {
    host_.reset();
    WorkerHostOptions options;
    options.facts.name = name;
    options.folder = absl::StrCat(folder_.path(), "/", name);
    host_ = std::make_unique<WorkerHost>(
        std::move(options), TestDependencies(clock_, control_, remote_, *transport_, router_));
    host_->MakeRegister();
    host_->OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
  }

  Assignment OneStage(const Epoch& epoch, int64_t steps = 6) const {
    run::RunSpec spec = TestSpec("r");
    spec.data.id = index_.Id();
    spec.data.tokens = static_cast<int64_t>(index_.bytes);
    spec.train.steps = steps;
    const int ops = static_cast<int>(model::BuildGraph(spec.model)->ops.size());
    Assignment assignment = TestAssignment(spec, {ops});
    assignment.epoch = epoch;
    return assignment;
  }
  // Ready is the first word of a stage, so whatever it says now is new.
  void AssignAndAwaitReady(const Assignment& assignment) {
    control_.Take();
    host_->OnMessage(assignment);
    EXPECT_EQ(control_.WaitFor<Ready>().epoch, assignment.epoch);
  }
  // Trains to the end and returns the shard of the last step.
  checkpoint::Shard Train(const Assignment& assignment) {
    AssignAndAwaitReady(assignment);
    host_->OnMessage(Start{assignment.run, assignment.epoch});
    const Ended ended = control_.WaitFor<Ended>();
    EXPECT_EQ(ended.step, assignment.spec.train.steps);
    checkpoint::Shard last;
    for (const ToCoordinator& message : control_.Take()) {
      if (const auto* stored = std::get_if<ShardStored>(&message)) last = stored->shard;
    }
    return last;
  }
  Assignment Continue(Assignment assignment, const checkpoint::Shard& shard) const {
    assignment.start_step = assignment.spec.train.steps - 1;
    checkpoint::Manifest& manifest = assignment.checkpoint.emplace();
    manifest.run = assignment.run;
    manifest.step = assignment.start_step;
    manifest.shards = {shard};
    return assignment;
  }
  // What is sent again on a new stream.
  std::vector<std::string> Reconnect() {
    host_->MakeRegister();
    control_.Take();
    host_->OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
    return control_.TakeTexts();
  }
  // How this worker ends a data stream of run r that begins in a stage that its plan has not.
  absl::Status AnswerToStranger() {
    const auto stream = *transport_->Dial("node", "memory:a", clock_.Now() + absl::Seconds(1));
    StreamHello hello;
    hello.run = "r";
    hello.epoch = kFirst;
    hello.token = "token";
    hello.from_group = 7;
    stream->Write(hello).IgnoreError();
    return stream->Read().status();
  }
  // Of an assignment that must fail.
  absl::Status FailureOf(const Assignment& assignment) {
    control_.Take();
    host_->OnMessage(assignment);
    const Failed failed = control_.WaitFor<Failed>();
    EXPECT_EQ(failed.epoch, assignment.epoch);
    return failed.status;
  }

  TestFolder folder_;
  FakeClock clock_;
  InProcessNetwork network_{clock_};
  ExchangeRouter router_{clock_};
  std::unique_ptr<Transport> transport_ = network_.MakeTransport();
  FakeControl control_;
  FakeRemote remote_;
  data::DatasetIndex index_;
  std::unique_ptr<WorkerHost> host_;
};

TEST_F(WorkerHostTest, AnEndedStageAnswersItsPeersUntilItIsReleased) {
  AssignAndAwaitReady(OneStage(kFirst, 2));
  EXPECT_EQ(AnswerToStranger().code(), absl::StatusCode::kInvalidArgument);
  host_->OnMessage(Start{"r", kFirst});
  control_.WaitFor<Ended>();
  EXPECT_EQ(AnswerToStranger().code(), absl::StatusCode::kInvalidArgument);
  host_->OnMessage(Released{"r", kFirst});
  // The next stage begins once the one before has left.
  Assignment next = OneStage(kFirst);
  next.run = next.spec.name = "other";
  AssignAndAwaitReady(next);
  EXPECT_THAT(std::string(AnswerToStranger().message()), HasSubstr("run r is not here"));
}

TEST_F(WorkerHostTest, TrainsReportsStoresAndIsReleased) {
  EXPECT_FALSE(host_->busy());
  EXPECT_EQ(host_->Describe(), "idle");
  AssignAndAwaitReady(OneStage(kFirst, 3));
  EXPECT_TRUE(host_->busy());
  host_->OnMessage(Start{"r", kFirst});
  control_.WaitFor<Ended>();
  EXPECT_THAT(control_.TakeTexts(),
              ElementsAre("ready of r 1.1", "report 1 of r 1.1", "report 2 of r 1.1",
                          "report 3 of r 1.1", "stored 3 of r 1.1", "ended 3 of r 1.1"));
  EXPECT_EQ(host_->Describe(), "run r stage 0 step 3, ended");
  host_->OnMessage(Released{"r", kFirst});
  EXPECT_FALSE(host_->busy());
  host_->OnMessage(StepAcknowledged{"r", kFirst, 1});
  host_->OnMessage(StepAcknowledged{"r", kFirst, 2});
  EXPECT_THAT(Reconnect(), ElementsAre("report 3 of r 1.1"));
}

TEST_F(WorkerHostTest, TrainsOnWhileTheCoordinatorIsAwayAndTellsItAll) {
  AssignAndAwaitReady(OneStage(kFirst, 3));
  host_->MakeRegister();  // a stream begins, and nobody accepts yet
  control_.Take();
  host_->OnMessage(Start{"r", kFirst});
  remote_.WaitForStores(1, [] {});
  EXPECT_THAT(control_.TakeTexts(), IsEmpty());
  host_->OnMessage(Accepted{absl::Seconds(10), absl::Seconds(1)});
  control_.WaitFor<Ended>();
  EXPECT_THAT(control_.TakeTexts(),
              ElementsAre("report 1 of r 1.1", "report 2 of r 1.1", "report 3 of r 1.1",
                          "ready of r 1.1", "stored 3 of r 1.1", "ended 3 of r 1.1"));
}

TEST_F(WorkerHostTest, RegistersWithWhatItTrains) {
  EXPECT_FALSE(host_->MakeRegister().attachment.has_value());
  host_->OnMessage(Accepted{});
  Train(OneStage(kFirst, 3));
  const Register hello = host_->MakeRegister();
  EXPECT_EQ(hello.facts.name, "node");
  ASSERT_TRUE(hello.attachment.has_value());
  EXPECT_EQ(hello.attachment->run, "r");
  EXPECT_EQ(hello.attachment->epoch, kFirst);
  EXPECT_EQ(hello.attachment->step, 3);
}

// Unless the worker's configuration says how long: as long as the lease that it was granted, and a
// second where that is shorter.
TEST_F(WorkerHostTest, ASilentPeerIsWaitedForAsLongAsTheLease) {
  for (const absl::Duration lease : {absl::ZeroDuration(), absl::Seconds(20), absl::Minutes(5)}) {
    StartHost(absl::StrCat("node-", absl::FormatDuration(lease)));
    host_->OnMessage(Accepted{lease, absl::Seconds(1)});
    Assignment assignment = OneStage(kFirst);
    const auto graph = model::BuildGraph(assignment.spec.model);
    const int ops = static_cast<int>(graph->ops.size());
    assignment = TestAssignment(assignment.spec, {graph->CutPoints()[1], ops}, /*stage=*/1);
    AssignAndAwaitReady(assignment);
    const absl::Time since = clock_.Now();
    host_->OnMessage(Start{"r", kFirst});
    const absl::Duration shortest = std::max(lease, absl::Seconds(1));
    const Failed failed = control_.WaitFor<Failed>([&] { clock_.Advance(shortest / 20); });
    EXPECT_GE(clock_.Now() - since, shortest);
    EXPECT_THAT(std::string(failed.status.message()),
                AllOf(HasSubstr("waited"), HasSubstr("from stage 0 (node-0")));
  }
}

// One process for six steps, or one for five and another node for the sixth: the same bits.
TEST_F(WorkerHostTest, ContinuesFromACheckpointToTheSameBits) {
  const checkpoint::Shard five = Train(OneStage(kFirst, 5));
  const checkpoint::Shard six = Train(OneStage(kSecond, 6));
  StartHost("another");
  const checkpoint::Shard continued = Train(Continue(OneStage({1, 3}, 6), five));
  EXPECT_EQ(remote_.shard_fetches(), 1);
  EXPECT_EQ(continued.sha256, six.sha256);
  EXPECT_NE(five.sha256, six.sha256);
}

TEST_F(WorkerHostTest, StopsAfterTheStepItIsAtAndStoresIt) {
  AssignAndAwaitReady(OneStage(kFirst, 1'000'000));
  host_->OnMessage(Start{"r", kFirst});
  control_.WaitFor<StepReport>();
  host_->OnMessage(Stop{"r", kFirst});
  const Ended ended = control_.WaitFor<Ended>();
  EXPECT_LT(ended.step, 1'000'000);
  EXPECT_EQ(control_.WaitFor<ShardStored>().step, ended.step);
}

TEST_F(WorkerHostTest, ARunThatDivergesEndsByItself) {
  Assignment assignment = OneStage(kFirst, 100);
  // Decay makes every weight grow by a great factor in each step.
  assignment.spec.train.optimizer.learning_rate = 1e3;
  assignment.spec.train.optimizer.weight_decay = 1e3;
  AssignAndAwaitReady(assignment);
  host_->OnMessage(Start{"r", kFirst});
  const Failed failed = control_.WaitFor<Failed>();
  EXPECT_TRUE(failed.divergence.has_value());
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("not finite"));
  EXPECT_LT(failed.step, 40);
}

TEST_F(WorkerHostTest, LeavesWhileItTrains) {
  AssignAndAwaitReady(OneStage(kFirst, 1'000'000));
  host_->OnMessage(Start{"r", kFirst});
  control_.WaitFor<StepReport>();
  host_.reset();  // joins
}

TEST_F(WorkerHostTest, AnAbortBeforeTheStartMakesItIdle) {
  AssignAndAwaitReady(OneStage(kFirst));
  host_->OnMessage(Abort{"r", kFirst, "a peer was lost"});
  EXPECT_FALSE(host_->busy());
  EXPECT_EQ(host_->Describe(), "idle");
  EXPECT_FALSE(host_->MakeRegister().attachment.has_value());
  EXPECT_THAT(Reconnect(), IsEmpty());
  host_->OnMessage(Start{"r", kFirst});  // too late
  EXPECT_FALSE(host_->busy());
  Train(OneStage(kSecond, 3));
}

TEST_F(WorkerHostTest, AnAbortOfAnOlderEpochIsIgnored) {
  AssignAndAwaitReady(OneStage(kSecond));
  host_->OnMessage(Abort{"r", kFirst, "late"});
  host_->OnMessage(Abort{"another", kSecond, "not ours"});
  EXPECT_TRUE(host_->busy());
  EXPECT_THAT(Reconnect(), ElementsAre("ready of r 1.2"));
}

TEST_F(WorkerHostTest, AnAssignmentThatIsNotNewerIsIgnored) {
  AssignAndAwaitReady(OneStage(kSecond));
  host_->OnMessage(OneStage(kFirst));
  host_->OnMessage(OneStage(kSecond));
  EXPECT_EQ(host_->MakeRegister().attachment->epoch, kSecond);
  EXPECT_THAT(Reconnect(), ElementsAre("ready of r 1.2"));
}

TEST_F(WorkerHostTest, ANewerAssignmentReplacesTheStage) {
  AssignAndAwaitReady(OneStage(kFirst));
  AssignAndAwaitReady(OneStage(kSecond));
  EXPECT_THAT(Reconnect(), ElementsAre("ready of r 1.2"));
  Assignment other = OneStage(kFirst);
  other.run = other.spec.name = "other";
  AssignAndAwaitReady(other);
  EXPECT_EQ(host_->MakeRegister().attachment->run, "other");
  EXPECT_THAT(Reconnect(), ElementsAre("ready of other 1.1"));
}

TEST_F(WorkerHostTest, AStageThatWasAbortedSaysNothingMore) {
  remote_.HoldStores(true);
  AssignAndAwaitReady(OneStage(kFirst, 3));
  host_->OnMessage(Start{"r", kFirst});
  remote_.WaitForStores(1, [] {});  // its last shard is on its way
  host_->OnMessage(Abort{"r", kFirst, "planned again"});
  remote_.HoldStores(false);
  AssignAndAwaitReady(OneStage(kSecond, 3));  // joins the old stage
  EXPECT_THAT(control_.TakeTexts(), ElementsAre("ready of r 1.2"));
  EXPECT_THAT(Reconnect(), ElementsAre("report 1 of r 1.1", "report 2 of r 1.1",
                                       "report 3 of r 1.1", "ready of r 1.2"));
}

TEST_F(WorkerHostTest, AnotherNumericClassIsRefusedBeforeAnythingIsFetched) {
  Assignment assignment = OneStage(kFirst);
  assignment.numeric_class = "cpu-of-another-kind";
  const absl::Status status = FailureOf(assignment);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cpu-of-another-kind"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(compute::MakeCpuBackend(1)->numeric_class()));
  EXPECT_EQ(remote_.index_fetches(), 0);
  assignment.epoch = kSecond;
  assignment.numeric_class = compute::MakeCpuBackend(1)->numeric_class();
  AssignAndAwaitReady(assignment);
}

TEST_F(WorkerHostTest, SaysThatItGoesOnWhileItLoadsACheckpoint) {
  const checkpoint::Shard shard = Train(OneStage(kFirst, 1));
  StartHost("another");
  AssignAndAwaitReady(Continue(OneStage(kSecond, 2), shard));
  EXPECT_THAT(control_.TakeTexts(), Contains("preparing of r 1.2"));
  EXPECT_EQ(remote_.shard_fetches(), 1);
}

TEST_F(WorkerHostTest, AnIndexWithAnotherHashIsRefusedByName) {
  data::DatasetIndex other = index_;
  other.chunk_sha256[0] = std::string(64, '0');
  remote_.SetData(other, std::string(1000, 'x'));
  const absl::Status status = FailureOf(OneStage(kFirst));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(index_.Id()));
}

TEST_F(WorkerHostTest, AChunkWithAnotherHashIsRefused) {
  remote_.SetData(index_, std::string(1000, 'x'));
  EXPECT_EQ(FailureOf(OneStage(kFirst)).code(), absl::StatusCode::kDataLoss);
}

TEST_F(WorkerHostTest, AnotherNumberOfTokensIsRefused) {
  Assignment assignment = OneStage(kFirst);
  assignment.spec.data.tokens = 999;
  const absl::Status status = FailureOf(assignment);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000 tokens, the run says 999"));
}

TEST_F(WorkerHostTest, WhyDataDidNotComeIsPassedOn) {
  remote_.SetIndexStatus(absl::PermissionDeniedError("not for this node"));
  const absl::Status status = FailureOf(OneStage(kFirst));
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not for this node"));
}

TEST_F(WorkerHostTest, AnAssignmentThatMakesNoSenseFailsTheStageOnly) {
  uint32_t number = 1;
  for (const auto& spoil : std::vector<std::function<void(Assignment&)>>{
           [](Assignment& a) { a.spec.model.context = 0; },
           [](Assignment& a) { a.spec.data.validation_fraction = 7; },
           [](Assignment& a) { a.spec.data.tokens = -1; },
           [](Assignment& a) { a.spec.data.id = "../../etc/passwd"; },
           [](Assignment& a) { a.run = "../r"; }, [](Assignment& a) { a.stages.clear(); },
           [](Assignment& a) { a.stage = -1; }, [](Assignment& a) { a.start_step = 2; }}) {
    Assignment assignment = OneStage({1, number++});
    spoil(assignment);
    EXPECT_EQ(FailureOf(assignment).code(), absl::StatusCode::kInvalidArgument) << number;
  }
  EXPECT_EQ(remote_.index_fetches(), 0);
  Train(OneStage({2, 1}, 3));
}

TEST_F(WorkerHostTest, AStartThatNeverComesEndsTheStage) {
  AssignAndAwaitReady(OneStage(kFirst));
  control_.Take();
  const Failed failed = control_.WaitFor<Failed>([this] { clock_.Advance(absl::Hours(1)); });
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(failed.status.message()), HasSubstr("did not start run r within 24h"));
}

TEST_F(WorkerHostTest, OldShardsDoNotFillTheDisk) {
  std::vector<checkpoint::Shard> stored = {Train(OneStage({1, 1}, 1))};
  for (uint32_t steps = 2; steps <= 6; ++steps) {
    stored.push_back(Train(Continue(OneStage({1, steps}, steps), stored.back())));
  }
  EXPECT_EQ(remote_.shards().size(), 6u);
  std::vector<std::string> here;
  for (const auto& file :
       std::filesystem::directory_iterator(folder_.path() + "/node/checkpoints/shards")) {
    here.push_back(file.path().filename());
  }
  EXPECT_THAT(here, UnorderedElementsAre(stored[2].sha256, stored[3].sha256, stored[4].sha256,
                                         stored[5].sha256));
  EXPECT_EQ(remote_.shard_fetches(), 0);
}

}  // namespace
}  // namespace longhaul::worker
