#include "worker/exec/stage_executor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/exec/testing/executor_cluster.h"

namespace longhaul::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 5;

class EveryPipeline : public testing::TestWithParam<std::tuple<int, std::string, bool>> {
 protected:
  static ClusterOptions Options() {
    const auto& [stages, schedule, tied] = GetParam();
    return {.stages = stages, .schedule = schedule, .tied = tied};
  }
};

TEST_P(EveryPipeline, TrainsToTheSameBitsAsTheDefinition) {
  ReferenceRun reference(Options());
  ExecutorCluster cluster(Options());
  EXPECT_EQ(cluster.State(), reference.State());
  const auto results = cluster.RunSteps(1, kSteps);
  int clipped = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const ReferenceRun::Step expected = reference.RunStep(step);
    for (int s = 0; s < cluster.stages(); ++s) {
      ASSERT_TRUE(results[s].back().ok()) << results[s].back().status();
      const StepResult& result = *results[s][step - 1];
      EXPECT_EQ(result.step, step);
      EXPECT_TRUE(result.applied);
      EXPECT_EQ(result.gradient_norm, expected.gradient_norm);
      EXPECT_EQ(result.loss_sum, s == cluster.stages() - 1 ? expected.loss_sum : 0);
      EXPECT_EQ(result.tokens, 12 * 16);
      EXPECT_EQ(result.directive, Directive::kNone);
      EXPECT_GT(result.timings.compute, 0);
      EXPECT_GE(result.timings.total, result.timings.compute + result.timings.wait);
    }
    clipped += expected.gradient_norm > ClusterSpec(Options()).train.optimizer.grad_clip;
  }
  EXPECT_GE(clipped, 3);
  EXPECT_EQ(cluster.State(), reference.State());
}

TEST_P(EveryPipeline, EvaluatesToTheSameBitsAndChangesNothing) {
  ReferenceRun reference(Options());
  ExecutorCluster cluster(Options());
  for (int step = 1; step <= 2; ++step) {
    const auto steps = cluster.RunSteps(step, 1);
    const auto evaluations = cluster.Evaluate(step);
    reference.RunStep(step);
    const double expected = reference.ValidationLossSum();
    for (int s = 0; s < cluster.stages(); ++s) {
      ASSERT_TRUE(steps[s].back().ok()) << steps[s].back().status();
      ASSERT_TRUE(evaluations[s].ok()) << evaluations[s].status();
      const bool last = s == cluster.stages() - 1;
      EXPECT_EQ(evaluations[s]->loss_sum, last ? expected : 0);
      EXPECT_EQ(evaluations[s]->targets, s == 0 || last ? 128 : 0);
    }
  }
  EXPECT_EQ(cluster.State(), reference.State());
}

// The mean is over the targets that count, whoever counts them.
TEST(StageExecutor, DocumentsDoNotMakeTheBitsDependOnThePartition) {
  for (const run::DocumentMode mode : {run::DocumentMode::kMasked, run::DocumentMode::kSeparate}) {
    for (const int stages : {1, 2, 4}) {
      const ClusterOptions options{.stages = stages, .data = {.documents = mode}};
      ReferenceRun reference(options);
      ExecutorCluster cluster(options);
      const auto results = cluster.RunSteps(1, kSteps);
      for (int step = 1; step <= kSteps; ++step) {
        const ReferenceRun::Step expected = reference.RunStep(step);
        EXPECT_GT(expected.targets, 0);
        EXPECT_LT(expected.targets, 12 * 16);
        for (int s = 0; s < stages; ++s) {
          ASSERT_TRUE(results[s].back().ok()) << results[s].back().status();
          EXPECT_EQ(results[s][step - 1]->tokens, expected.targets);
          EXPECT_EQ(results[s][step - 1]->gradient_norm, expected.gradient_norm);
        }
        EXPECT_EQ(results[stages - 1][step - 1]->loss_sum, expected.loss_sum);
      }
      EXPECT_EQ(cluster.State(), reference.State());
      const auto evaluations = cluster.Evaluate(kSteps);
      ASSERT_TRUE(evaluations.back().ok()) << evaluations.back().status();
      EXPECT_EQ(evaluations.back()->loss_sum, reference.ValidationLossSum());
      EXPECT_LT(evaluations.back()->targets, 128);
    }
  }
}

// Every token ends a document: no step has a target.
TEST(StageExecutor, SkipsAStepWithoutTargetsOnAllStages) {
  ExecutorCluster cluster(
      {.stages = 3,
       .data = {.documents = run::DocumentMode::kSeparate, .every_token_ends_a_document = true}});
  const StateBits before = cluster.State();
  const auto results = cluster.RunSteps(1, 2);
  for (int s = 0; s < 3; ++s) {
    ASSERT_TRUE(results[s].back().ok()) << results[s].back().status();
    EXPECT_FALSE(results[s][0]->applied);
    EXPECT_EQ(results[s][0]->tokens, 0);
    EXPECT_EQ(results[s][0]->loss_sum, 0);
    EXPECT_EQ(results[s][0]->gradient_norm, 0);
  }
  EXPECT_EQ(cluster.State(), before);
}

INSTANTIATE_TEST_SUITE_P(StageExecutor, EveryPipeline,
                         testing::Combine(testing::Range(1, 5), testing::Values("gpipe", "1f1b"),
                                          testing::Bool()));

// Dropout must draw for the micro-batch and the step that it is, again when recomputing, and not in
// evaluation; tensors beside the residual cross cuts inside blocks.
TEST(StageExecutor, DropoutRecomputationAndCutsInsideBlocksKeepTheBits) {
  ReferenceRun reference({.llama = true});
  std::vector<ReferenceRun::Step> expected;
  for (int step = 1; step <= 3; ++step) expected.push_back(reference.RunStep(step));
  const double validation = reference.ValidationLossSum();
  for (const int stages : {1, 2, 3, 5}) {
    for (const bool recompute : {false, true}) {
      ExecutorCluster cluster({.stages = stages,
                               .schedule = recompute ? "gpipe" : "1f1b",
                               .llama = true,
                               .inside_blocks = true,
                               .recompute = recompute});
      const auto results = cluster.RunSteps(1, 3);
      for (int step = 1; step <= 3; ++step) {
        ASSERT_TRUE(results[stages - 1].back().ok()) << results[stages - 1].back().status();
        EXPECT_EQ(results[stages - 1][step - 1]->loss_sum, expected[step - 1].loss_sum);
      }
      const auto evaluations = cluster.Evaluate(3);
      ASSERT_TRUE(evaluations.back().ok()) << evaluations.back().status();
      EXPECT_EQ(evaluations.back()->loss_sum, validation);
      EXPECT_EQ(cluster.State(), reference.State()) << stages << " stages, " << recompute;
    }
  }
}

TEST(StageExecutor, ThreadsDoNotChangeTheBits) {
  ReferenceRun reference({});
  ExecutorCluster cluster({.stages = 2, .threads = 2});
  const auto results = cluster.RunSteps(1, 2);
  for (int step = 1; step <= 2; ++step) reference.RunStep(step);
  ASSERT_TRUE(results[1].back().ok()) << results[1].back().status();
  EXPECT_EQ(cluster.State(), reference.State());
}

TEST(StageExecutor, ALosslessCodecDoesNotChangeTheBits) {
  ReferenceRun reference({});
  ExecutorCluster cluster({.stages = 3, .codec = "zstd"});
  const auto results = cluster.RunSteps(1, 3);
  for (int step = 1; step <= 3; ++step) reference.RunStep(step);
  ASSERT_TRUE(results[2].back().ok()) << results[2].back().status();
  EXPECT_EQ(cluster.State(), reference.State());
}

TEST(StageExecutor, ALossyCodecStaysNear) {
  ReferenceRun reference({});
  ExecutorCluster cluster({.stages = 3, .codec = "bf16"});
  const auto results = cluster.RunSteps(1, 3);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(results[2].back().ok()) << results[2].back().status();
    const double expected = reference.RunStep(step).loss_sum;
    EXPECT_NEAR(results[2][step - 1]->loss_sum, expected, 0.01 * expected);
  }
  EXPECT_NE(cluster.State(), reference.State());
}

TEST(StageExecutor, BrokenConnectionsDoNotChangeTheBits) {
  ReferenceRun reference({});
  ExecutorCluster cluster({.stages = 3});
  for (int step = 1; step <= 3; ++step) {
    std::thread fault([&] { cluster.BreakConnections(); });
    const auto results = cluster.RunSteps(step, 1);
    fault.join();
    reference.RunStep(step);
    for (int s = 0; s < 3; ++s) ASSERT_TRUE(results[s][0].ok()) << results[s][0].status();
  }
  EXPECT_EQ(cluster.State(), reference.State());
  EXPECT_GT(cluster.exchange(1).counters().reconnects, 0u);
}

TEST(StageExecutor, LearnsSomething) {
  ExecutorCluster cluster({.stages = 2});
  const auto results = cluster.RunSteps(1, 20);
  ASSERT_TRUE(results[1].back().ok()) << results[1].back().status();
  EXPECT_LT(results[1].back()->loss_sum, 0.9 * results[1].front()->loss_sum);
}

TEST(StageExecutor, SkipsAStepThatIsNotFiniteOnAllStages) {
  for (const float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (int poisoned = 0; poisoned < 3; ++poisoned) {
      ExecutorCluster cluster({.stages = 3});
      ReferenceRun reference({});
      ASSERT_TRUE(cluster.RunSteps(1, 1)[0][0].ok());
      reference.RunStep(1);
      // The bias of an attention projection or so: held by one stage only.
      float& weight = cluster.stage(poisoned).parameters()[4].weights[1];
      const float healthy = weight;
      weight = poison;
      const StateBits before = cluster.State();
      const auto results = cluster.RunSteps(2, 1);
      for (int s = 0; s < cluster.stages(); ++s) {
        ASSERT_TRUE(results[s][0].ok()) << results[s][0].status();
        EXPECT_EQ(results[s][0]->step, 2);
        EXPECT_FALSE(results[s][0]->applied);
        EXPECT_FALSE(std::isfinite(results[s][0]->gradient_norm));
      }
      EXPECT_EQ(cluster.State(), before);
      // The run goes on as if step 2 had not been.
      weight = healthy;
      ASSERT_TRUE(cluster.RunSteps(3, 1)[0][0].ok());
      reference.RunStep(3);
      EXPECT_EQ(cluster.State(), reference.State());
    }
  }
}

TEST(StageExecutor, ADirectiveReachesAllStagesAtOneStep) {
  ExecutorCluster cluster({.stages = 4, .tied = false});
  ASSERT_TRUE(cluster.RunSteps(1, 1)[0][0].ok());
  cluster.directives().Set(Directive::kStop);
  const auto results = cluster.RunSteps(2, 2);
  for (int s = 0; s < cluster.stages(); ++s) {
    ASSERT_TRUE(results[s].back().ok()) << results[s].back().status();
    EXPECT_EQ(results[s][0]->directive, Directive::kStop);
    EXPECT_EQ(results[s][1]->directive, Directive::kNone);
  }
}

TEST(StageExecutor, ADirectiveInTheMiddleOfRunningStepsIsSeenOnceByAll) {
  ExecutorCluster cluster({.stages = 3});
  std::thread control([&] { cluster.directives().Set(Directive::kStop); });
  const auto results = cluster.RunSteps(1, 4);
  control.join();
  for (int step = 0; step < 4; ++step) {
    for (int s = 1; s < 3; ++s) {
      ASSERT_TRUE(results[s].back().ok()) << results[s].back().status();
      EXPECT_EQ(results[s][step]->directive, results[0][step]->directive);
    }
  }
}

TEST(StageExecutor, APeerThatStopsIsNamedWhenTheDeadlinePasses) {
  ExecutorCluster cluster({.stages = 3, .wait_max = absl::Milliseconds(50)});
  // Stage 0 alone: its activations fill the window and no gradient comes.
  const absl::Status first = cluster.executor(0).RunStep(1).status();
  EXPECT_EQ(first.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(first.message()),
              AllOf(HasSubstr("exchange: "), HasSubstr("stage-1"), HasSubstr("micro-batch 0"),
                    HasSubstr("gradient")));
  const absl::Status last = cluster.executor(2).RunStep(1).status();
  EXPECT_EQ(last.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(last.message()),
              AllOf(HasSubstr("exchange: "), HasSubstr("stage-1"), HasSubstr("micro-batch 0"),
                    HasSubstr("activation")));
}

TEST(StageExecutor, CancelEndsEveryWaitWithItsReason) {
  ExecutorCluster cluster({.stages = 3});
  const StateBits before = cluster.State();
  const absl::Time start = cluster.clock().Now();
  std::vector<absl::Status> statuses(3);
  std::thread stage_1([&] { statuses[1] = cluster.executor(1).RunStep(1).status(); });
  std::thread stage_2([&] { statuses[2] = cluster.executor(2).RunStep(1).status(); });
  EXPECT_TRUE(cluster.clock().AwaitWaits(2, start + kLongWait));
  for (int s = 1; s < 3; ++s) cluster.exchange(s).Cancel(absl::AbortedError("epoch 1.4 is here"));
  stage_1.join();
  stage_2.join();
  for (int s = 1; s < 3; ++s) {
    EXPECT_EQ(statuses[s].code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(statuses[s].message()), HasSubstr("epoch 1.4 is here"));
  }
  EXPECT_EQ(cluster.State(), before);
}

TEST(StageExecutor, ATokenOutsideTheVocabularyIsAnError) {
  ExecutorCluster cluster({.stages = 1, .data = {.token_outside = 1000}});
  const StateBits before = cluster.State();
  const absl::Status status = cluster.executor(0).RunStep(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("forward of micro-batch 0: "), HasSubstr("1000")));
  EXPECT_EQ(cluster.State(), before);
}

// Plays one end of a pipeline of two stages by hand.
class FalsePeer : public testing::Test {
 protected:
  static FrameKey Key(FrameKind kind, int consumer, int m = 0) {
    return {.epoch = {.term = 1, .number = 3},
            .step = 1,
            .micro_batch = static_cast<uint32_t>(m),
            .stage = static_cast<uint32_t>(consumer),
            .kind = kind};
  }
  static absl::Time Deadline() { return RealClock().Now() + absl::Seconds(60); }

  ExecutorCluster cluster_{{.stages = 2, .tied = false}};
  std::vector<float> tensor_ = std::vector<float>(2 * 16 * 32, 0.01f);
};

TEST_F(FalsePeer, NormsThatDoNotFitAreRefused) {
  absl::Status status;
  std::thread first([&] { status = cluster_.executor(0).RunStep(1).status(); });
  Exchange& peer = cluster_.exchange(1);
  for (int m = 0; m < 6; ++m) {
    EXPECT_EQ(
        peer.Receive(0, Key(FrameKind::kActivation, 1, m), absl::MakeSpan(tensor_), Deadline()),
        absl::OkStatus());
    EXPECT_EQ(peer.Send(0, Key(FrameKind::kGradient, 0, m), tensor_, Deadline()), absl::OkStatus());
  }
  EXPECT_EQ(peer.SendDoubles(0, Key(FrameKind::kNorms, 0), {0, 1.0}, Deadline()), absl::OkStatus());
  first.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exchange: norms of stage 1"));
}

TEST_F(FalsePeer, AVerdictThatMakesNoSenseIsRefusedAndNothingApplied) {
  const StateBits before = cluster_.State();
  absl::Status status;
  std::thread last([&] { status = cluster_.executor(1).RunStep(1).status(); });
  Exchange& peer = cluster_.exchange(0);
  for (int m = 0; m < 6; ++m) {
    EXPECT_EQ(peer.Send(1, Key(FrameKind::kActivation, 1, m), tensor_, Deadline()),
              absl::OkStatus());
    std::vector<float> gradient(tensor_.size());
    EXPECT_EQ(
        peer.Receive(1, Key(FrameKind::kGradient, 0, m), absl::MakeSpan(gradient), Deadline()),
        absl::OkStatus());
  }
  EXPECT_TRUE(peer.ReceiveDoubles(1, Key(FrameKind::kNorms, 0), Deadline()).ok());
  EXPECT_EQ(peer.SendDoubles(1, Key(FrameKind::kVerdict, 1),
                             {1, 1.0, std::numeric_limits<double>::quiet_NaN(), 8, 0}, Deadline()),
            absl::OkStatus());
  last.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("exchange: verdict: the gradient scale is nan"));
  EXPECT_EQ(cluster_.State(), before);
}

}  // namespace
}  // namespace longhaul::worker
