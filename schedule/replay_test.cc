#include "schedule/replay.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/testing/evaluation_programs.h"
#include "schedule/testing/parse_program.h"

namespace longhaul::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Shape kTwoByTwo{.stages = 2, .micro_batches = 2};
constexpr char kFirst[] = "stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O";
constexpr char kLast[] = "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 SN RV O";

std::string Refusal(const std::vector<std::string>& texts, const Shape& shape,
                    const ReplayOptions& options = {}) {
  std::vector<Program> programs;
  for (const std::string& text : texts) {
    const auto program = ParseProgram(text);
    EXPECT_TRUE(program.ok()) << program.status();
    programs.push_back(*program);
  }
  const absl::Status status = Replay(programs, shape, options);
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kFailedPrecondition) << status;
  return std::string(status.message());
}

TEST(Replay, AcceptsAHandWrittenPipeline) { EXPECT_EQ(Refusal({kFirst, kLast}, kTwoByTwo), ""); }

TEST(Replay, MarksThePlaceInTheGrid) {
  EXPECT_THAT(Refusal({kFirst, "stage 1 slots 1: RA0 B0 F0 SG0 RA1 F1 B1 SG1 SN RV O"}, kTwoByTwo),
              HasSubstr("stage 1, step 1 of the replay, B0: it computes before its Forward\n"
                        "stage 0 slots 2: F0 SA0 F1 SA1 [RG0] B0 RG1 B1 RN DV SV O\n"
                        "stage 1 slots 1: RA0 >>B0<< F0 SG0 RA1 F1 B1 SG1 SN RV O\n"));
}

TEST(Replay, GridOfALongProgramIsCutToTheNeighbourhood) {
  const Shape shape{.stages = 1, .micro_batches = 1000};
  auto programs = *Generate("gpipe", shape);
  std::swap(programs[0].instructions[1500], programs[0].instructions[1501]);
  const absl::Status status = Replay(programs, shape);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("stage 0 slots 1000: ... B484"), HasSubstr(">>B501<< B500"),
                    HasSubstr(" ...\n")));
  EXPECT_LT(status.message().size(), 500u);
}

TEST(Replay, NamesEveryWaitOfADeadlock) {
  // Each waits for the other's frame of micro-batch 0 before it sends its own.
  const std::string refusal =
      Refusal({"stage 0 slots 2: F0 RG0 SA0 F1 SA1 B0 RG1 B1 RN DV SV O", kLast}, kTwoByTwo);
  EXPECT_THAT(refusal, AllOf(HasSubstr("deadlock"),
                             HasSubstr("stage 0 step 1 RG0 waits for stage 1 to send it"),
                             HasSubstr("stage 1 step 1 RA0 waits for stage 0 to send it")));
}

TEST(Replay, FindsADeadlockOfWindows) {
  // The last stage wants micro-batch 1 first, which is sent last; a window of 1 never gets there.
  const std::vector<std::string> texts = {"stage 0 slots 2: F0 SA0 F1 SA1",
                                          "stage 1 slots 2: RA1 F1 RA0 F0"};
  EXPECT_EQ(Refusal(texts, kTwoByTwo, {.window = 2, .evaluation = true}), "");
  EXPECT_THAT(Refusal(texts, kTwoByTwo, {.window = 1, .evaluation = true}),
              AllOf(HasSubstr("deadlock"), HasSubstr("stage 0 step 1 SA1 waits for stage 1 to "
                                                     "receive one of 1 unconsumed frames")));
}

TEST(Replay, WindowsOfTheSlotsAreEnoughForEverySchedule) {
  for (const std::string& name : ScheduleNames()) {
    const Shape shape{.stages = 4, .micro_batches = 8, .tied = true};
    const auto programs = *Generate(name, shape);
    EXPECT_EQ(Replay(programs, shape, {.steps = 5}), absl::OkStatus());
  }
}

struct BadPrograms {
  const char* first;
  const char* last;
  const char* why;
};

class Refused : public testing::TestWithParam<BadPrograms> {};

TEST_P(Refused, WithItsReason) {
  EXPECT_THAT(Refusal({GetParam().first, GetParam().last}, kTwoByTwo), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Replay, Refused,
    testing::Values(
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "SA1 is missing: stage 1 waits for a frame that nobody sends"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 F1 B1 SG1 SN RV O",
                    "RA1 is missing: nobody receives the frame that stage 0 sends"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 RG1 B0 B1 RN DV SV O", kLast,
                    "RG1: it overwrites the gradient of micro-batch 0"},
        BadPrograms{kFirst, "stage 1 slots 1: F0 RA0 B0 SG0 RA1 F1 B1 SG1 SN RV O",
                    "F0: it computes before its activation has come"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 B0 RG0 RG1 B1 RN DV SV O", kLast,
                    "B0: it computes before its gradient has come"},
        BadPrograms{"stage 0 slots 2: SA0 F0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "SA0: there is no activation to send before Forward"},
        BadPrograms{"stage 0 slots 1: F0 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "F1: slot 0 is still occupied by micro-batch 0"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 RA1 F0 B0 SG0 F1 B1 SG1 SN RV O",
                    "RA1: slot 0 is still occupied by micro-batch 0"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RN DV SV O", kLast,
                    "RG1 is missing: nobody receives the frame that stage 1 sends"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 SG1 SN RV O", "B1 is forgotten"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 B0 SG0 RA1 F1 B1 SG1 SN RV O",
                    "B0: it is done twice"},
        BadPrograms{kFirst, "stage 1 slots 2: RA0 F0 RA1 F1 B1 SG1 B0 SG0 SN RV O",
                    "B1: gradients are accumulated out of micro-batch order: 0 is next"},
        BadPrograms{kFirst, "stage 1 slots 2: RA0 F0 B0 RA1 F1 SG0 B1 SG1 SN RV O",
                    "SG0: its gradient has been overwritten"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 SN O RV",
                    "O: the step is applied without a verdict"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV O SV", kLast,
                    "O: the verdict is not forwarded before it is applied"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 SN RV", "O is forgotten"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 SN B1 SG1 RV O",
                    "SN: gradients are not complete: Backward of micro-batch 1 is still to come"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 DV RN SV O", kLast,
                    "DV: the norms of the stages after this one are missing: RN comes too late"},
        BadPrograms{kFirst, "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SN RV O SG1",
                    "stage 1 step 1 RV waits for stage 0 to send it"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 SG1 RN DV SV O", kLast,
                    "SG1: this stage must not have it"},
        BadPrograms{"stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 F2 RN DV SV O", kLast,
                    "F2: micro-batch 2 is not one of the 2"},
        BadPrograms{"stage 0 slots 2: F0+1 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "F0+1: a synchronous schedule has no step offsets"},
        BadPrograms{"stage 1 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "program 0 is of stage 1"},
        BadPrograms{"stage 0 slots 3: F0 SA0 F1 SA1 RG0 B0 RG1 B1 RN DV SV O", kLast,
                    "with 3 slots; it must be of stage 0 with 1 to 2 slots"}));

TEST(Replay, RefusesTheTiedSumOutOfItsPlace) {
  const Shape shape{.stages = 2, .micro_batches = 1, .tied = true};
  const char first[] = "stage 0 slots 1: F0 SA0 RG0 B0 RTG STS RN DV SV O";
  const char last[] = "stage 1 slots 1: RA0 F0 B0 SG0 STG SN RTS RV O";
  EXPECT_EQ(Refusal({first, last}, shape), "");
  EXPECT_THAT(Refusal({"stage 0 slots 1: F0 SA0 RG0 B0 STS RTG RN DV SV O", last}, shape),
              HasSubstr("STS: the head's gradient is not in the sum"));
  EXPECT_THAT(Refusal({first, "stage 1 slots 1: RA0 F0 STG B0 SG0 SN RTS RV O"}, shape),
              HasSubstr("STG: gradients are not complete"));
  EXPECT_THAT(Refusal({first, "stage 1 slots 1: RA0 F0 B0 SG0 STG SN RV O RTS"}, shape),
              HasSubstr("O: the tied sum is not in the gradient"));
  EXPECT_THAT(Refusal({first, last}, {.stages = 2, .micro_batches = 1}),
              HasSubstr("RTG: this stage must not have it"));
}

TEST(Replay, RefusesShapesAndCountsThatDoNotFit) {
  EXPECT_THAT(Refusal({kFirst}, kTwoByTwo),
              HasSubstr("1 programs for 2 device groups of 2 stages"));
  EXPECT_THAT(Refusal({}, {.stages = 0, .micro_batches = 1}), HasSubstr("0 stages"));
  EXPECT_THAT(Refusal({kFirst, kLast}, {.stages = 2, .micro_batches = 0}),
              HasSubstr("0 micro-batches"));
  EXPECT_THAT(Refusal({kFirst, kLast}, kTwoByTwo, {.steps = 0}), HasSubstr("0 steps"));
}

TEST(Replay, AnEvaluationIsNotATrainingProgram) {
  const auto programs = GenerateEvaluation(EvaluationShape({1, 1}, 2));
  EXPECT_NE(Replay(programs, kTwoByTwo), absl::OkStatus());
  EXPECT_THAT(Refusal({kFirst, kLast}, kTwoByTwo, {.evaluation = true}),
              HasSubstr("RG0: this stage must not have it"));
}

constexpr char kLeader[] = "stage 0 slots 1: F0 B0 F2 B2 AR AL DV BV O";
constexpr char kOther[] = "stage 0 replica 1 slots 1: F1 B1 AR AL BV O";
const Shape kTwoReplicas{1, 3, false, {2}, {{0, 1, 0}}};

TEST(ReplayOfReplicas, AcceptsAHandWrittenStep) {
  EXPECT_EQ(Refusal({kLeader, kOther}, kTwoReplicas), "");
}

class RefusedReplicas : public testing::TestWithParam<BadPrograms> {};

TEST_P(RefusedReplicas, WithTheirReason) {
  EXPECT_THAT(Refusal({GetParam().first, GetParam().last}, kTwoReplicas),
              HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Replay, RefusedReplicas,
    testing::Values(BadPrograms{kLeader, "stage 0 replica 1 slots 1: F1 B1 AL BV O",
                                "AR is missing: the other replicas wait for it"},
                    BadPrograms{kLeader, "stage 0 replica 1 slots 1: F1 B1 AL AR BV O",
                                "stage 0 replica 0 step 1 AR waits for replica 1 to come to it"},
                    BadPrograms{
                        kLeader, "stage 0 replica 1 slots 1: F1 AR B1 AL BV O",
                        "stage 0 replica 1, step 1 of the replay, AR: gradients are not complete"},
                    BadPrograms{kLeader, "stage 0 replica 1 slots 1: F1 B1 AR AL O BV",
                                "O: the step is applied without a verdict"},
                    BadPrograms{kLeader, "stage 0 replica 1 slots 1: F1 B1 AR AL DV BV O",
                                "DV: this replica must not have it"},
                    BadPrograms{"stage 0 slots 1: F0 B0 F2 B2 AR AL BV DV O", kOther,
                                "BV: there is no verdict to broadcast"},
                    BadPrograms{"stage 0 slots 1: F0 B0 F2 B2 DV AR AL BV O", kOther,
                                "DV: the gradients of the other replicas are missing"},
                    BadPrograms{"stage 0 slots 1: F0 B0 F1 B1 AR AL DV BV O", kOther,
                                "F1: micro-batch 1 is taken by stage 0 replica 1"},
                    BadPrograms{kLeader, "stage 0 slots 1: F1 B1 AR AL BV O",
                                "it must be of stage 0 replica 1 with 1 to 1 slots"},
                    BadPrograms{kLeader, "stage 0 replica 1 slots 2: F1 B1 AR AL BV O",
                                "it must be of stage 0 replica 1 with 1 to 1 slots"}));

}  // namespace
}  // namespace longhaul::schedule
