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
#include "schedule/testing/symbolic_run.h"

namespace longhaul::schedule {
namespace {

class Mutation : public testing::TestWithParam<std::tuple<std::string, Shape>> {
 protected:
  void SetUp() override {
    shape_ = std::get<1>(GetParam());
    programs_ = *Generate(std::get<0>(GetParam()), shape_);
  }

  int groups() const { return static_cast<int>(programs_.size()); }
  std::vector<Instruction>& instructions(int group) { return programs_[group].instructions; }

  std::string Texts() const {
    std::string texts;
    for (const Program& program : programs_) absl::StrAppend(&texts, ToText(program), "\n");
    return texts;
  }

  Shape shape_;
  std::vector<Program> programs_;
};

TEST_P(Mutation, EveryRemovalIsRefused) {
  for (int group = 0; group < groups(); ++group) {
    const std::vector<Instruction> original = instructions(group);
    for (size_t i = 0; i < original.size(); ++i) {
      instructions(group).erase(instructions(group).begin() + i);
      EXPECT_FALSE(TrainsCorrectly(programs_, shape_, 3)) << Texts();
      EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
      instructions(group) = original;
    }
  }
}

TEST_P(Mutation, EveryDuplicateIsRefused) {
  for (int group = 0; group < groups(); ++group) {
    const std::vector<Instruction> original = instructions(group);
    for (size_t i = 0; i < original.size(); ++i) {
      for (size_t to = 0; to <= original.size(); ++to) {
        instructions(group).insert(instructions(group).begin() + to, original[i]);
        EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
        instructions(group) = original;
      }
    }
  }
}

TEST_P(Mutation, EveryHarmfulMoveIsRefused) {
  int harmful = 0;
  for (int group = 0; group < groups(); ++group) {
    const std::vector<Instruction> original = instructions(group);
    for (size_t from = 0; from < original.size(); ++from) {
      for (size_t to = 0; to < original.size(); ++to) {
        instructions(group).erase(instructions(group).begin() + from);
        instructions(group).insert(instructions(group).begin() + to, original[from]);
        if (!TrainsCorrectly(programs_, shape_, 3)) {
          ++harmful;
          EXPECT_FALSE(Replay(programs_, shape_).ok()) << Texts();
        }
        instructions(group) = original;
      }
    }
  }
  EXPECT_GT(harmful, 0);
}

TEST_P(Mutation, EveryHarmfulSwapIsRefused) {
  for (int group = 0; group < groups(); ++group) {
    std::vector<Instruction>& list = instructions(group);
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

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const bool tied : {false, true}) {
    for (const int stages : {1, 2, 3}) {
      for (const int micro_batches : {2, 4}) {
        shapes.push_back({.stages = stages, .micro_batches = micro_batches, .tied = tied});
      }
    }
    shapes.push_back({2, 3, tied, {1, 2}, {{0, 0, 0}, {1, 0, 1}}});
    shapes.push_back({2, 4, tied, {2, 2}, {SpreadOwners({2, 2}), BlockOwners({2, 2})}});
  }
  shapes.push_back({1, 4, false, {3}, {SpreadOwners({1, 2, 1})}});
  shapes.push_back({3, 3, true, {2, 1, 2}, {{0, 0, 1}, {0, 0, 0}, {0, 1, 0}}});
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(Replay, Mutation,
                         testing::Combine(testing::ValuesIn(ScheduleNames()),
                                          testing::ValuesIn(Shapes())));

}  // namespace
}  // namespace longhaul::schedule
