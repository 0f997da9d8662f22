// Programs: what one device group does in a step, as a list of instructions. A program is data: it
// can be printed, replayed without a model, and executed.
#ifndef LONGHAUL_SCHEDULE_PROGRAM_H_
#define LONGHAUL_SCHEDULE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul::schedule {

enum class InstructionKind {
  kRecvActivation,  // F input of micro-batch m from stage s-1
  kForward,
  kSendActivation,    // to stage s+1
  kRecvGradient,      // from stage s+1
  kBackward,          // frees slot m
  kSendGradient,      // to stage s-1
  kReduceGradients,   // all replicas of the stage together: every accumulator becomes their sum
  kReduceLosses,      // likewise of the last stage: the losses of all micro-batches
  kSendTiedGradient,  // last stage -> first: the head use's accumulator
  kRecvTiedGradient,
  kSendTiedSum,  // first -> last: embedding + head
  kRecvTiedSum,
  kBroadcastTiedSum,  // from a stage's first replica to its others
  kRecvNorms,         // from stage s+1: sums of squares of the stages after this one
  kSendNorms,         // to stage s-1
  kDecideVerdict,     // first stage only: total norm, apply or skip, and the pending directive
  kRecvVerdict,       // from stage s-1
  kSendVerdict,       // to stage s+1
  kBroadcastVerdict,  // from a stage's first replica to its others
  kOptimizerStep,     // apply or skip, as the verdict says
};

struct Instruction {
  InstructionKind kind = InstructionKind::kForward;
  int stage = 0;
  int step_offset = 0;     // 0: the step being executed (others: asynchronous schedules)
  int micro_batch = 0;     // 0 for once-a-step kinds
  int weight_version = 0;  // 0: the step's weights
  bool operator==(const Instruction&) const = default;
};

// One device group's program for one step: of one replica of one stage. The first replica of a
// stage is its leader: it alone takes part in the tied exchange, the norms and the verdicts between
// stages.
struct Program {
  int stage = 0;
  int replica = 0;
  int slots = 1;  // micro-batches in flight; SlotMap says which slot is whose
  std::vector<Instruction> instructions;
  bool operator==(const Program&) const = default;
};

// What the generators need to know of the plan.
struct Shape {
  int stages = 1;
  int micro_batches = 1;
  bool tied = false;  // first and last stage share a parameter and are not the same stage
  std::vector<int> replicas = {};  // by stage; empty: one each
  // By stage and micro-batch: the replica that takes it. Empty: there is one replica each. In a
  // training step every replica takes at least one.
  std::vector<std::vector<int>> owners = {};
};

// Owners of a stage's micro-batches where replica r takes shares[r] of them, their sum in all.
// Spread: in turn, each as evenly over the step as its share allows.
std::vector<int> SpreadOwners(absl::Span<const int> shares);
// The first replica takes the first shares[0] micro-batches, the next one the next.
std::vector<int> BlockOwners(absl::Span<const int> shares);

// The slot of each micro-batch of a program: its position among the program's own, modulo slots.
class SlotMap {
 public:
  explicit SlotMap(const Program& program);
  // `micro_batch` has a Forward in the program.
  int Of(int micro_batch) const;

 private:
  std::vector<int> slots_;  // by micro-batch; -1: not of this program
};

// Text form, one instruction a token: "F3", "B3", "RA3", "SA3", "RG3", "SG3", "AR", "AL", "STG",
// "RTG", "STS", "RTS", "BT", "RN", "SN", "DV", "RV", "SV", "BV", "O"; prefixed by
// "stage 1 slots 4:", or "stage 1 replica 2 slots 4:" for another replica than the first. A step
// offset is written "F3+1", a weight version "F3@2".
std::string ToText(const Instruction& instruction);
std::string ToText(const Program& program);

// Generators by name ("gpipe", "1f1b"); one Program for each device group, stage by stage and
// replica by replica.
//   gpipe: all forwards, then all backwards in the same order (Huang et al. 2019).
//   1f1b:  min(stages - s, micro_batches) warm-up forwards, then one backward and one forward in
//          turn, then the remaining backwards (PipeDream-Flush, Narayanan et al. 2021). With
//          replicas the same in one order for all: see one_f_one_b.cc.
// Backwards run in micro-batch order in both, so that accumulators see the same order.
// InvalidArgument for an unknown name, or a shape that is empty or contradicts itself. `tied` with
// one stage means not tied.
absl::StatusOr<std::vector<Program>> Generate(absl::string_view schedule, const Shape& shape);
std::vector<std::string> ScheduleNames();

// The shape of an evaluation over `micro_batches` validation micro-batches, which may be none: each
// stage's replicas take them in turn. `replicas` is by stage.
Shape EvaluationShape(absl::Span<const int> replicas, int micro_batches);
// The forward-only program of one group, with one slot: sending an activation copies it and frees
// the slot. `shape` is EvaluationShape's.
Program GenerateEvaluationOf(const Shape& shape, int stage, int replica);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_PROGRAM_H_
