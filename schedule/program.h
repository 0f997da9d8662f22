// Programs: what one stage does in a step, as a list of instructions. A program is data: it can be
// printed, parsed, replayed without a model, and executed.
#ifndef LONGHAUL_SCHEDULE_PROGRAM_H_
#define LONGHAUL_SCHEDULE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::schedule {

enum class InstructionKind {
  kRecvActivation,  // F input of micro-batch m from stage s-1
  kForward,
  kSendActivation,    // to stage s+1
  kRecvGradient,      // from stage s+1
  kBackward,          // frees slot m
  kSendGradient,      // to stage s-1
  kSendTiedGradient,  // last stage -> first: the head use's accumulator
  kRecvTiedGradient,
  kSendTiedSum,  // first -> last: embedding + head
  kRecvTiedSum,
  kRecvNorms,      // from stage s+1: sums of squares of the stages after this one
  kSendNorms,      // to stage s-1
  kDecideVerdict,  // first stage only: total norm, apply or skip, and the pending directive
  kRecvVerdict,    // from stage s-1
  kSendVerdict,    // to stage s+1
  kOptimizerStep,  // apply or skip, as the verdict says
};

struct Instruction {
  InstructionKind kind = InstructionKind::kForward;
  int stage = 0;
  int step_offset = 0;     // 0: the step being executed (others: asynchronous schedules)
  int micro_batch = 0;     // 0 for once-a-step kinds
  int weight_version = 0;  // 0: the step's weights
  bool operator==(const Instruction&) const = default;
};

// One stage's program for one step.
struct Program {
  int stage = 0;
  int slots = 1;  // micro-batches in flight: slot of m is m % slots
  std::vector<Instruction> instructions;
  bool operator==(const Program&) const = default;
};

// What the generators need to know of the plan.
struct Shape {
  int stages = 1;
  int micro_batches = 1;
  bool tied = false;  // first and last stage share a parameter and are not the same stage
};

// Text form, one instruction a token: "F3", "B3", "RA3", "SA3", "RG3", "SG3", "STG", "RTG", "STS",
// "RTS", "RN", "SN", "DV", "RV", "SV", "O"; prefixed by "stage 1 slots 4:". A step offset is
// written "F3+1", a weight version "F3@2".
std::string ToText(const Instruction& instruction);
std::string ToText(const Program& program);
// Every instruction gets the stage of its program. InvalidArgument shows what is wrong; hostile
// text is safe, and what is kept is never longer than the text.
absl::StatusOr<Program> ParseProgram(absl::string_view text);

// Generators by name ("gpipe", "1f1b"); one Program for each stage.
//   gpipe: all forwards, then all backwards in the same order (Huang et al. 2019).
//   1f1b:  min(stages - s, micro_batches) warm-up forwards, then one backward and one forward in
//          turn, then the remaining backwards (PipeDream-Flush, Narayanan et al. 2021).
// Backwards run in micro-batch order in both, so that accumulators see the same order.
// InvalidArgument for an unknown name or an empty shape. `tied` with one stage means not tied.
absl::StatusOr<std::vector<Program>> Generate(absl::string_view schedule, const Shape& shape);
std::vector<std::string> ScheduleNames();

// Forward-only programs over `micro_batches` validation micro-batches, one slot each: sending an
// activation copies it and frees the slot.
std::vector<Program> GenerateEvaluation(int stages, int micro_batches);
// The one of `stage`.
Program GenerateEvaluationOf(int stage, int stages, int micro_batches);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_PROGRAM_H_
