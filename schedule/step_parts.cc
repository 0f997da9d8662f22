#include "schedule/step_parts.h"

#include "absl/types/span.h"
#include "schedule/instruction_kind.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

constexpr InstructionKind kForwardKinds[] = {kRecvActivation, kForward, kSendActivation};
constexpr InstructionKind kBackwardKinds[] = {kRecvGradient, kBackward, kSendGradient};
// The first stage sends the verdict on its way before it gives the tied sum to its replicas; the
// last one does that while the verdict is still to come.
constexpr InstructionKind kFirstTail[] = {
    kReduceGradients, kReduceLosses, kRecvTiedGradient, kSendTiedSum,      kRecvNorms,
    kDecideVerdict,   kSendVerdict,  kBroadcastTiedSum, kBroadcastVerdict, kOptimizerStep,
};
constexpr InstructionKind kOtherTail[] = {
    kReduceGradients, kReduceLosses,     kSendTiedGradient, kRecvNorms,
    kSendNorms,       kRecvTiedSum,      kBroadcastTiedSum, kRecvVerdict,
    kSendVerdict,     kBroadcastVerdict, kOptimizerStep,
};

void AppendPresent(absl::Span<const InstructionKind> kinds, const Shape& shape, int m,
                   Program& program) {
  for (const InstructionKind kind : kinds) {
    if (!TrainingHas(kind, program.stage, program.replica, shape)) continue;
    program.instructions.push_back({.kind = kind, .stage = program.stage, .micro_batch = m});
  }
}

}  // namespace

void AppendForward(const Shape& shape, int m, Program& program) {
  AppendPresent(kForwardKinds, shape, m, program);
}

void AppendBackward(const Shape& shape, int m, Program& program) {
  AppendPresent(kBackwardKinds, shape, m, program);
}

void AppendStepTail(const Shape& shape, Program& program) {
  if (program.stage == 0) {
    AppendPresent(kFirstTail, shape, 0, program);
  } else {
    AppendPresent(kOtherTail, shape, 0, program);
  }
}

}  // namespace longhaul::schedule
