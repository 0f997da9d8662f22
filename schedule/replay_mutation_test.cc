// Breaks valid programs in every small way and asks the symbolic run, which shares nothing with the
// checker, whether the result still trains correctly: whatever does not must be refused.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/replay.h"
#include "schedule/symbolic_run.h"

namespace longhaul::schedule {
namespace {

class Mutation : public testing::TestWithParam<std::tuple<std::string, int, int, bool>> {
 protected:
  void SetUp() override {
    const auto& [schedule, stages, micro_batches, tied] = GetParam();
    shape_ = {.stages = stages, .micro_batches = micro_batches, .tied = tied};
    programs_ = *Generate(schedule, shape_);
  }

  std::vector<Instruction>& instructions(int stage) { return programs_[stage].instructions; }

  std::string Texts() const {
    std::string texts;
    for (const Program& program : programs_) absl::StrAppend(&texts, ToText(program), "\n");
    return texts;
  }

  Shape shape_;
  std::vector<Program> programs_;
};

TEST_P(Mutation, EveryRemovalIsRefused) {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const std::vector<Instruction> original = instructions(stage);
    for (size_t i = 0; i < original.size(); ++i) {
      instructions(stage).erase(instructions(stage).begin() + i);
      EXPECT_FALSE(TrainsCorrectly(programs_, shape_, 3)) << Texts();
      EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
      instructions(stage) = original;
    }
  }
}

TEST_P(Mutation, EveryDuplicateIsRefused) {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const std::vector<Instruction> original = instructions(stage);
    for (size_t i = 0; i < original.size(); ++i) {
      for (size_t to = 0; to <= original.size(); ++to) {
        instructions(stage).insert(instructions(stage).begin() + to, original[i]);
        EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
        instructions(stage) = original;
      }
    }
  }
}

TEST_P(Mutation, EveryHarmfulMoveIsRefused) {
  int harmful = 0;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    const std::vector<Instruction> original = instructions(stage);
    for (size_t from = 0; from < original.size(); ++from) {
      for (size_t to = 0; to < original.size(); ++to) {
        instructions(stage).erase(instructions(stage).begin() + from);
        instructions(stage).insert(instructions(stage).begin() + to, original[from]);
        if (!TrainsCorrectly(programs_, shape_, 3)) {
          ++harmful;
          EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
        }
        instructions(stage) = original;
      }
    }
  }
  EXPECT_GT(harmful, 0);
}

TEST_P(Mutation, EveryHarmfulSwapIsRefused) {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    std::vector<Instruction>& list = instructions(stage);
    for (size_t a = 0; a < list.size(); ++a) {
      for (size_t b = a + 1; b < list.size(); ++b) {
        std::swap(list[a], list[b]);
        const bool harmful = !TrainsCorrectly(programs_, shape_, 3);
        EXPECT_FALSE(harmful && Replay(programs_, shape_).ok()) << Texts();
        std::swap(list[a], list[b]);
      }
    }
  }
}

TEST_P(Mutation, FewerSlotsAreRefused) {
  for (Program& program : programs_) {
    const int enough = program.slots;
    for (program.slots = 1; program.slots < enough; ++program.slots) {
      EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replay, Mutation,
                         testing::Combine(testing::ValuesIn(ScheduleNames()),
                                          testing::Values(1, 2, 3), testing::Values(2, 4),
                                          testing::Bool()));

}  // namespace
}  // namespace longhaul::schedule
