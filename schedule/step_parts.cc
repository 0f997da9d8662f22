#include "schedule/step_parts.h"

#include "absl/types/span.h"
#include "schedule/instruction_kind.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

constexpr InstructionKind kForwardKinds[] = {kRecvActivation, kForward, kSendActivation};
constexpr InstructionKind kBackwardKinds[] = {kRecvGradient, kBackward, kSendGradient};
constexpr InstructionKind kTailKinds[] = {
    kSendTiedGradient, kRecvTiedGradient, kSendTiedSum, kRecvNorms,   kSendNorms,
    kRecvTiedSum,      kDecideVerdict,    kRecvVerdict, kSendVerdict, kOptimizerStep,
};

void AppendPresent(absl::Span<const InstructionKind> kinds, const Shape& shape, int m,
                   Program& program) {
  for (const InstructionKind kind : kinds) {
    if (!TrainingHas(kind, program.stage, shape)) continue;
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
  AppendPresent(kTailKinds, shape, 0, program);
}

}  // namespace longhaul::schedule
