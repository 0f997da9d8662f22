#include <algorithm>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/replay.h"
#include "schedule/testing/evaluation_programs.h"
#include "schedule/testing/symbolic_run.h"

namespace longhaul::schedule {
namespace {

using ::testing::Combine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Range;
using ::testing::ValuesIn;

std::vector<std::string> Texts(const std::vector<Program>& programs) {
  std::vector<std::string> texts;
  for (const Program& program : programs) texts.push_back(ToText(program));
  return texts;
}

// Written by hand from figures 2 of Huang et al. 2019 and 4 of Narayanan et al. 2021.
TEST(Generate, GpipeOfTwoStages) {
  const auto programs = Generate("gpipe", {.stages = 2, .micro_batches = 3});
  ASSERT_TRUE(programs.ok());
  EXPECT_THAT(Texts(*programs),
              ElementsAre("stage 0 slots 3: F0 SA0 F1 SA1 F2 SA2 RG0 B0 RG1 B1 RG2 B2 RN DV SV O",
                          "stage 1 slots 3: RA0 F0 RA1 F1 RA2 F2 B0 SG0 B1 SG1 B2 SG2 SN RV O"));
}

TEST(Generate, OneForwardOneBackwardOfThreeStages) {
  const auto programs = Generate("1f1b", {.stages = 3, .micro_batches = 4, .tied = true});
  ASSERT_TRUE(programs.ok());
  EXPECT_THAT(
      Texts(*programs),
      ElementsAre("stage 0 slots 3: F0 SA0 F1 SA1 F2 SA2 RG0 B0 F3 SA3 RG1 B1 RG2 B2 RG3 B3 RTG "
                  "STS RN DV SV O",
                  "stage 1 slots 2: RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RA2 F2 SA2 RG1 B1 SG1 RA3 F3 "
                  "SA3 RG2 B2 SG2 RG3 B3 SG3 RN SN RV SV O",
                  "stage 2 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 RA2 F2 B2 SG2 RA3 F3 B3 SG3 STG SN "
                  "RTS RV O"));
}

TEST(Generate, OneStageHasNoFramesAndIsNeverTied) {
  for (const std::string& name : ScheduleNames()) {
    const auto programs = Generate(name, {.stages = 1, .micro_batches = 1, .tied = true});
    ASSERT_TRUE(programs.ok());
    EXPECT_THAT(Texts(*programs), ElementsAre("stage 0 slots 1: F0 B0 DV O"));
  }
}

TEST(Generate, EvaluationIsForwardOnly) {
  EXPECT_THAT(
      Texts(GenerateEvaluation(EvaluationShape({1, 1, 1}, 2))),
      ElementsAre("stage 0 slots 1: F0 SA0 F1 SA1", "stage 1 slots 1: RA0 F0 SA0 RA1 F1 SA1",
                  "stage 2 slots 1: RA0 F0 RA1 F1"));
}

TEST(Generate, RefusesUnknownNamesAndEmptyShapes) {
  const absl::Status unknown = Generate("zigzag", {.stages = 2, .micro_batches = 2}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("'zigzag' is not known; use gpipe or 1f1b"));
  EXPECT_EQ(Generate("gpipe", {.stages = 0, .micro_batches = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Generate("1f1b", {.stages = 2, .micro_batches = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

class EveryShape : public testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(EveryShape, ReplaysAndTrains) {
  const auto& [schedule, stages, tied] = GetParam();
  for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
    const Shape shape{.stages = stages, .micro_batches = micro_batches, .tied = tied};
    const auto programs = Generate(schedule, shape);
    ASSERT_TRUE(programs.ok());
    ASSERT_EQ(Replay(*programs, shape), absl::OkStatus());
    if (stages <= 4) {
      ASSERT_TRUE(TrainsCorrectly(*programs, shape, 3)) << micro_batches;
    }
    for (int s = 0; s < stages; ++s) {
      const int in_flight =
          schedule == "gpipe" ? micro_batches : std::min(stages - s, micro_batches);
      EXPECT_EQ((*programs)[s].slots, in_flight);
      EXPECT_EQ(LinkWindow(*programs, s), in_flight);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Generate, EveryShape,
                         Combine(ValuesIn(ScheduleNames()), Range(1, 9), testing::Bool()));

TEST(Generate, EveryEvaluationReplays) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 0; micro_batches <= 16; ++micro_batches) {
      const Shape shape = EvaluationShape(std::vector<int>(stages, 1), micro_batches);
      EXPECT_EQ(Replay(GenerateEvaluation(shape), shape, {.evaluation = true}), absl::OkStatus());
    }
  }
}

}  // namespace
}  // namespace longhaul::schedule
