#include "schedule/timeline.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/testing/evaluation_programs.h"
#include "schedule/testing/parse_program.h"

namespace longhaul::schedule {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TimelineCosts Uniform(int stages, double forward, double backward, double latency = 0,
                      double transfer = 0) {
  TimelineCosts costs;
  costs.forward_seconds.assign(stages, forward);
  costs.backward_seconds.assign(stages, backward);
  costs.activation_latency.assign(stages - 1, latency);
  costs.gradient_latency.assign(stages - 1, latency);
  costs.activation_transfer.assign(stages - 1, transfer);
  costs.gradient_transfer.assign(stages - 1, transfer);
  return costs;
}

std::vector<Program> Evaluation(int stages, int micro_batches) {
  return GenerateEvaluation(EvaluationShape(std::vector<int>(stages, 1), micro_batches));
}

// Start and end of the only instruction of this kind and micro-batch.
std::vector<double> Span(const Timeline& timeline, int stage, InstructionKind kind, int m = 0) {
  std::vector<double> span;
  for (const TimedInstruction& timed : timeline.groups[stage]) {
    if (timed.instruction.kind != kind || timed.instruction.micro_batch != m) continue;
    span.insert(span.end(), {timed.start, timed.end});
  }
  return span;
}

// Both schedules: idle part of (S - 1) / (M + S - 1) (Huang et al. 2019, section 2; Narayanan et
// al. 2021, section 2.2 as bubble over ideal time, (S - 1) / M).
TEST(Timeline, BubbleIsThePublishedOne) {
  for (const std::string& name : ScheduleNames()) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (const int micro_batches : {1, 2, 5, 8, 16}) {
        const auto programs = *Generate(name, {.stages = stages, .micro_batches = micro_batches});
        for (const double backward : {1.0, 2.0}) {
          const auto timeline = Simulate(programs, Uniform(stages, 1, backward));
          ASSERT_TRUE(timeline.ok()) << timeline.status();
          const double ideal = micro_batches * (1 + backward);
          EXPECT_THAT(timeline->step_seconds,
                      DoubleNear((micro_batches + stages - 1) * (1 + backward), 1e-9));
          for (int s = 0; s < stages; ++s) {
            EXPECT_THAT(timeline->compute_seconds[s], DoubleNear(ideal, 1e-9));
            const double bubble = 1 - timeline->compute_seconds[s] / timeline->step_seconds;
            EXPECT_THAT(bubble, DoubleNear((stages - 1.0) / (micro_batches + stages - 1), 1e-9));
          }
        }
      }
    }
  }
}

// Worked out on paper: forward 2, backward 4, latency 10, transfer 1, optimizer 3.
TEST(Timeline, TwoStagesOneMicroBatch) {
  const auto programs = *Generate("1f1b", {.stages = 2, .micro_batches = 1});
  TimelineCosts costs = Uniform(2, 2, 4, 10, 1);
  costs.optimizer_seconds = {3, 3};
  const Timeline timeline = *Simulate(programs, costs, 2);
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kForward), ElementsAre(0, 2, 37, 39));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kRecvActivation), ElementsAre(0, 13, 47, 50));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward), ElementsAre(13, 15, 50, 52));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kBackward), ElementsAre(15, 19, 52, 56));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kRecvGradient), ElementsAre(2, 30, 39, 67));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kBackward), ElementsAre(30, 34, 67, 71));
  // Norms leave at 19 behind the gradient on the same path (until 20) and arrive at 30.
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kRecvNorms), ElementsAre(34, 34, 71, 71));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kOptimizerStep), ElementsAre(34, 37, 71, 74));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kRecvVerdict), ElementsAre(19, 44, 56, 81));
  EXPECT_THAT(timeline.step_ends, ElementsAre(47, 84));
  EXPECT_EQ(timeline.step_seconds, 37);
  EXPECT_THAT(timeline.compute_seconds, ElementsAre(18, 18));
  EXPECT_THAT(timeline.wait_seconds, ElementsAre(56, 66));
}

TEST(Timeline, FramesOfOnePathGoOneAfterAnother) {
  // Transfers of 5 behind forwards of 1: the third activation ends its transfer at 1 + 3 * 5.
  const auto programs = Evaluation(2, 3);
  TimelineCosts costs = Uniform(2, 1, 0, 2, 5);
  const Timeline timeline = *Simulate(programs, costs);
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 0), ElementsAre(8, 9));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 1), ElementsAre(13, 14));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 2), ElementsAre(18, 19));
  EXPECT_EQ(timeline.step_seconds, 19);
}

TEST(Timeline, CodecsTakeTheStagesTime) {
  const auto programs = Evaluation(2, 2);
  TimelineCosts costs = Uniform(2, 1, 0, 10, 0);
  costs.activation_encode = {0.5};
  costs.activation_decode = {0.25};
  const Timeline timeline = *Simulate(programs, costs);
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kForward, 1), ElementsAre(1.5, 2.5));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kRecvActivation, 0), ElementsAre(0, 11.75));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kRecvActivation, 1), ElementsAre(12.75, 13.25));
  EXPECT_THAT(timeline.wait_seconds, ElementsAre(0, 11.75));
}

// Worked out on paper: while both stages work, each has half of the only core.
TEST(Timeline, StagesOfAHostShareItsCores) {
  const auto programs = Evaluation(2, 2);
  TimelineCosts costs = Uniform(2, 1, 0);
  costs.forward_seconds = {1, 2};
  costs.host = {0, 0};
  costs.threads = {1, 1};
  costs.host_cores = {1};
  const Timeline timeline = *Simulate(programs, costs);
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kForward, 0), ElementsAre(0, 1));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kForward, 1), ElementsAre(1, 3));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 0), ElementsAre(1, 4));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 1), ElementsAre(4, 6));
  EXPECT_THAT(timeline.compute_seconds, ElementsAre(3, 5));
}

TEST(Timeline, OneCoreTakesTheWholeWorkWhateverTheStages) {
  for (const std::string& name : ScheduleNames()) {
    for (const int stages : {1, 2, 3, 5}) {
      const auto programs = *Generate(name, {.stages = stages, .micro_batches = 6});
      TimelineCosts costs = Uniform(stages, 1.0 / stages, 2.0 / stages);
      costs.host.assign(stages, 0);
      costs.threads.assign(stages, 1);
      costs.host_cores = {1};
      EXPECT_THAT(Simulate(programs, costs)->step_seconds, DoubleNear(6 * 3, 1e-9));
    }
  }
}

TEST(Timeline, EnoughCoresAreAsGoodAsHostsOfTheirOwn) {
  const auto programs = *Generate("1f1b", {.stages = 3, .micro_batches = 7});
  TimelineCosts costs = Uniform(3, 0.3, 0.7, 0.05, 0.1);
  const Timeline alone = *Simulate(programs, costs, 2);
  costs.host = {1, 0, 0};
  costs.threads = {4, 1, 1};
  costs.host_cores = {2, 0};
  const Timeline shared = *Simulate(programs, costs, 2);
  EXPECT_EQ(shared.groups, alone.groups);
  EXPECT_EQ(shared.step_ends, alone.step_ends);
}

TEST(Timeline, TiedSumOverlapsWithTheNorms) {
  const auto programs = *Generate("gpipe", {.stages = 3, .micro_batches = 1, .tied = true});
  TimelineCosts costs = Uniform(3, 1, 1, 10, 0);
  costs.tied_gradient_latency = costs.tied_sum_latency = 20;
  costs.tied_gradient_transfer = costs.tied_sum_transfer = 5;
  const Timeline timeline = *Simulate(programs, costs);
  // Forwards until 23, the last backward until 24; the head's gradient is at the first stage at 49,
  // whose own backward ends at 46; the norms are there by then.
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kRecvTiedGradient), ElementsAre(46, 49));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kRecvNorms), ElementsAre(49, 49));
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kRecvTiedSum), ElementsAre(24, 74));
  EXPECT_EQ(timeline.step_seconds, 74);
}

TEST(Timeline, MoreLatencyNeverMakesAStepShorter) {
  const auto programs = *Generate("1f1b", {.stages = 4, .micro_batches = 8, .tied = true});
  double before = 0;
  for (const double latency : {0.0, 0.01, 0.1, 1.0, 10.0}) {
    const Timeline timeline = *Simulate(programs, Uniform(4, 1, 2, latency, 0.1), 3);
    EXPECT_GT(timeline.step_seconds, before);
    before = timeline.step_seconds;
  }
}

TEST(Timeline, RefusesCostsThatDoNotFit) {
  const auto programs = *Generate("gpipe", {.stages = 2, .micro_batches = 1});
  const auto refusal = [&](const TimelineCosts& costs) {
    const absl::Status status = Simulate(programs, costs).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Uniform(3, 1, 1)), HasSubstr("forward_seconds has 3 entries, 2 are needed"));
  TimelineCosts costs = Uniform(2, 1, 1);
  costs.gradient_transfer = {};
  EXPECT_THAT(refusal(costs), HasSubstr("gradient_transfer has 0 entries, 1 are needed"));
  costs = Uniform(2, 1, 1);
  costs.activation_latency = {-1};
  EXPECT_THAT(refusal(costs), HasSubstr("activation_latency is -1"));
  costs = Uniform(2, 1, 1);
  costs.tied_sum_transfer = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(costs), HasSubstr("tied_sum_transfer is nan"));
  costs = Uniform(2, 1, 1);
  costs.host = {0, 1};
  costs.host_cores = {2};
  EXPECT_THAT(refusal(costs), HasSubstr("threads has 0 entries, 2 are needed"));
  costs.threads = {1, 1};
  EXPECT_THAT(refusal(costs), HasSubstr("host is 1; host_cores has 1 entries"));
  EXPECT_FALSE(Simulate(programs, Uniform(2, 1, 1), 0).ok());
  EXPECT_FALSE(Simulate({}, Uniform(2, 1, 1)).ok());
}

TEST(Timeline, SaysWhenProgramsWaitForEver) {
  const std::vector<Program> programs = {*ParseProgram("stage 0 slots 1: RG0 F0 SA0"),
                                         *ParseProgram("stage 1 slots 1: RA0 F0 SG0")};
  const absl::Status status = Simulate(programs, Uniform(2, 1, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 0 waits for ever at RG0"));
}

}  // namespace
}  // namespace longhaul::schedule
