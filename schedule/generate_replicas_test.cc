#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/replay.h"
#include "schedule/testing/evaluation_programs.h"
#include "schedule/testing/symbolic_run.h"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Texts(const std::vector<Program>& programs) {
  std::vector<std::string> texts;
  for (const Program& program : programs) texts.push_back(ToText(program));
  return texts;
}

// Two replicas take twice as long each, so one more micro-batch is on its way.
TEST(GenerateReplicas, OneForwardOneBackward) {
  const Shape shape{2, 4, false, {1, 2}, {{0, 0, 0, 0}, SpreadOwners({2, 2})}};
  EXPECT_THAT(
      Texts(*Generate("1f1b", shape)),
      ElementsAre("stage 0 slots 3: F0 SA0 F1 SA1 F2 SA2 RG0 B0 F3 SA3 RG1 B1 RG2 B2 RG3 B3 RN DV "
                  "SV O",
                  "stage 1 slots 1: RA0 F0 B0 SG0 RA2 F2 B2 SG2 AR AL SN RV BV O",
                  "stage 1 replica 1 slots 1: RA1 F1 B1 SG1 RA3 F3 B3 SG3 AR AL BV O"));
}

TEST(GenerateReplicas, BlocksWorkAsPipelinesOfTheirOwn) {
  const Shape shape{2, 4, true, {2, 2}, {BlockOwners({2, 2}), BlockOwners({2, 2})}};
  EXPECT_THAT(
      Texts(*Generate("1f1b", shape)),
      ElementsAre("stage 0 slots 2: F0 SA0 F1 SA1 RG0 B0 RG1 B1 AR RTG STS RN DV SV BT BV O",
                  "stage 0 replica 1 slots 2: F2 SA2 F3 SA3 RG2 B2 RG3 B3 AR BT BV O",
                  "stage 1 slots 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 AR AL STG SN RTS BT RV BV O",
                  "stage 1 replica 1 slots 1: RA2 F2 B2 SG2 RA3 F3 B3 SG3 AR AL BT BV O"));
}

TEST(GenerateReplicas, GpipeForwardsItsOwnFirst) {
  const Shape shape{1, 3, false, {2}, {{0, 1, 0}}};
  EXPECT_THAT(Texts(*Generate("gpipe", shape)),
              ElementsAre("stage 0 slots 2: F0 F2 B0 B2 AR AL DV BV O",
                          "stage 0 replica 1 slots 1: F1 B1 AR AL BV O"));
}

TEST(GenerateReplicas, EvaluationTakesTurnsAndAddsTheLosses) {
  const Shape shape = EvaluationShape({1, 2}, 3);
  EXPECT_THAT(
      Texts(GenerateEvaluation(shape)),
      ElementsAre("stage 0 slots 1: F0 SA0 F1 SA1 F2 SA2", "stage 1 slots 1: RA0 F0 RA2 F2 AL",
                  "stage 1 replica 1 slots 1: RA1 F1 AL"));
}

TEST(GenerateReplicas, RefusesAReplicaWithoutWork) {
  const absl::Status status = Generate("1f1b", {1, 2, false, {2}, {{1, 1}}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 0 of a shape has no micro-batch"));
}

int Draw(std::mt19937& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

// Spread or in blocks by random shares, or without any order.
std::vector<int> RandomOwners(std::mt19937& random, int replicas, int micro_batches) {
  std::vector<int> owners(micro_batches);
  std::vector<int> shares(replicas, 0);
  for (int m = 0; m < micro_batches; ++m) {
    owners[m] = m < replicas ? m : Draw(random, 0, replicas - 1);
    ++shares[owners[m]];
  }
  const int how = Draw(random, 0, 2);
  if (how == 0) return SpreadOwners(shares);
  if (how == 1) return BlockOwners(shares);
  for (int m = micro_batches - 1; m > 0; --m) std::swap(owners[m], owners[Draw(random, 0, m)]);
  return owners;
}

Shape RandomShape(std::mt19937& random) {
  Shape shape{.stages = Draw(random, 1, 4),
              .micro_batches = Draw(random, 1, 12),
              .tied = Draw(random, 0, 1) == 1};
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int replicas = Draw(random, 1, std::min(4, shape.micro_batches));
    shape.replicas.push_back(replicas);
    shape.owners.push_back(RandomOwners(random, replicas, shape.micro_batches));
  }
  return shape;
}

std::string Describe(const Shape& shape) {
  std::string text = absl::StrCat(shape.stages, " stages", shape.tied ? " tied" : "", ", owners");
  for (const std::vector<int>& owners : shape.owners) {
    absl::StrAppend(&text, " [", absl::StrJoin(owners, " "), "]");
  }
  return text;
}

TEST(GenerateReplicas, AnyOwnersReplayAndTrain) {
  std::mt19937 random(11);
  for (int i = 0; i < 400; ++i) {
    const Shape shape = RandomShape(random);
    for (const std::string& schedule : ScheduleNames()) {
      const auto programs = Generate(schedule, shape);
      ASSERT_TRUE(programs.ok()) << programs.status();
      ASSERT_EQ(Replay(*programs, shape), absl::OkStatus()) << Describe(shape);
      ASSERT_TRUE(TrainsCorrectly(*programs, shape, 3)) << Describe(shape);
    }
  }
}

TEST(GenerateReplicas, OneReplicaEachIsTheScheduleWithoutReplicas) {
  for (const std::string& schedule : ScheduleNames()) {
    for (int stages = 1; stages <= 5; ++stages) {
      for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
        const Shape plain{.stages = stages, .micro_batches = micro_batches, .tied = true};
        Shape spelled_out = plain;
        spelled_out.replicas.assign(stages, 1);
        spelled_out.owners.assign(stages, std::vector<int>(micro_batches, 0));
        EXPECT_EQ(*Generate(schedule, plain), *Generate(schedule, spelled_out));
      }
    }
  }
}

TEST(GenerateReplicas, EveryEvaluationReplays) {
  std::mt19937 random(12);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> replicas(Draw(random, 1, 4));
    for (int& count : replicas) count = Draw(random, 1, 4);
    const Shape shape = EvaluationShape(replicas, Draw(random, 0, 12));
    EXPECT_EQ(Replay(GenerateEvaluation(shape), shape, {.evaluation = true}), absl::OkStatus())
        << Describe(shape);
  }
}

}  // namespace
}  // namespace longhaul::schedule
