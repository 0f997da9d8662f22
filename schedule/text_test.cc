#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"
#include "schedule/testing/parse_program.h"

namespace longhaul::schedule {
namespace {

using ::testing::HasSubstr;

TEST(Text, EveryKindRoundTrips) {
  Program program{.stage = 7, .replica = 4, .slots = 3, .instructions = {}};
  for (const KindInfo& info : AllKinds()) {
    Instruction instruction{.kind = info.kind, .stage = 7};
    program.instructions.push_back(instruction);
    if (info.per_micro_batch) instruction.micro_batch = std::numeric_limits<int>::max();
    program.instructions.push_back(instruction);
    instruction.step_offset = 12;
    program.instructions.push_back(instruction);
    instruction.weight_version = 5;
    program.instructions.push_back(instruction);
    instruction.step_offset = 0;
    program.instructions.push_back(instruction);
  }
  const auto parsed = ParseProgram(ToText(program));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, program);
}

TEST(Text, EveryGeneratedProgramRoundTrips) {
  for (const std::string& name : ScheduleNames()) {
    for (int stages = 1; stages <= 4; ++stages) {
      const Shape shape{.stages = stages, .micro_batches = 11, .tied = true};
      const std::vector<Program> programs = *Generate(name, shape);
      for (const Program& program : programs) {
        const auto parsed = ParseProgram(ToText(program));
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        EXPECT_EQ(*parsed, program);
      }
    }
  }
}

TEST(Text, IsTheDocumentedOne) {
  const auto program = ParseProgram("stage 1 slots 4: RA3 F3+1 F3@2 SG3 RTG O");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->stage, 1);
  EXPECT_EQ(program->slots, 4);
  ASSERT_EQ(program->instructions.size(), 6u);
  EXPECT_EQ(
      program->instructions[1],
      (Instruction{
          .kind = InstructionKind::kForward, .stage = 1, .step_offset = 1, .micro_batch = 3}));
  EXPECT_EQ(program->instructions[2].weight_version, 2);
  EXPECT_EQ(program->instructions[4].kind, InstructionKind::kRecvTiedGradient);
  EXPECT_EQ(program->replica, 0);
  EXPECT_TRUE(ParseProgram("stage 0 slots 1:")->instructions.empty());
  EXPECT_EQ(ParseProgram("stage 1 replica 2 slots 4: AR AL BT BV")->replica, 2);
}

class Hostile : public testing::TestWithParam<std::string> {};

TEST_P(Hostile, IsRefused) {
  const auto parsed = ParseProgram(GetParam());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("program text: '"));
  EXPECT_LT(parsed.status().message().size(), 400u);
}

INSTANTIATE_TEST_SUITE_P(
    Text, Hostile,
    testing::Values("", ":", "stage", "stage 1 slots 4", "stage  slots :", "stage 1 slots 0: F0",
                    "stage 1 replica 0 slots 1: F0", "stage 1 replica -1 slots 1: F0",
                    "stage 1 replica slots 1: F0", "stage 1 replica 2: F0", "stage 1 slots 1: AR1",
                    "stage -1 slots 1: F0", "stage 1 slots 99999999999: F0", "stage 1 slots 4 : F0",
                    "stage 2147483648 slots 1:", "stage 1 slots 1: F", "stage 1 slots 1: F-1",
                    "stage 1 slots 1: F2147483648", "stage 1 slots 1: X3", "stage 1 slots 1: f3",
                    "stage 1 slots 1: F3+", "stage 1 slots 1: F3@", "stage 1 slots 1: F3@+1",
                    "stage 1 slots 1: F3+99999999999999999999", "stage 1 slots 1: O3",
                    "stage 1 slots 1: F3x", "stage 1 slots 1: F3,B3", "stage 1 slots 1: F3@2+1",
                    "stage 1 slots 1: STGG", "stage 1 slots 1: F 3",
                    std::string("stage 1 slots 1: F3\0", 20),
                    "stage 1 slots 1: " + std::string(100000, 'F'), std::string(100000, '\xff')));

TEST(Text, EveryTruncationParsesToAPrefixOrIsRefused) {
  const Program program = (*Generate("1f1b", {.stages = 3, .micro_batches = 12, .tied = true}))[0];
  const std::string text = ToText(program);
  for (size_t length = 0; length < text.size(); ++length) {
    const auto parsed = ParseProgram(text.substr(0, length));
    if (!parsed.ok()) continue;
    EXPECT_LE(parsed->instructions.size(), program.instructions.size());
    EXPECT_TRUE(absl::StartsWith(text, ToText(*parsed)));
  }
}

TEST(Text, EveryChangedByteParsesToItselfOrIsRefused) {
  const std::string text = ToText((*Generate("1f1b", {.stages = 2, .micro_batches = 3}))[1]);
  for (size_t i = 0; i < text.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = text;
      changed[i] = static_cast<char>(byte);
      const auto parsed = ParseProgram(changed);
      if (!parsed.ok()) continue;
      EXPECT_EQ(*ParseProgram(ToText(*parsed)), *parsed);
    }
  }
}

}  // namespace
}  // namespace longhaul::schedule
