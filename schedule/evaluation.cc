#include <vector>

#include "base/check.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"

namespace longhaul::schedule {

Program GenerateEvaluationOf(int stage, int stages, int micro_batches) {
  LH_CHECK(stage >= 0 && stage < stages && micro_batches >= 0, "stage ", stage, " of ", stages,
           ", ", micro_batches, " micro-batches");
  constexpr InstructionKind kKinds[] = {InstructionKind::kRecvActivation, InstructionKind::kForward,
                                        InstructionKind::kSendActivation};
  Program program{.stage = stage, .slots = 1, .instructions = {}};
  for (int m = 0; m < micro_batches; ++m) {
    for (const InstructionKind kind : kKinds) {
      if (!EvaluationHas(kind, stage, stages)) continue;
      program.instructions.push_back({.kind = kind, .stage = stage, .micro_batch = m});
    }
  }
  return program;
}

std::vector<Program> GenerateEvaluation(int stages, int micro_batches) {
  LH_CHECK(stages >= 1, stages, " stages");
  std::vector<Program> programs;
  for (int stage = 0; stage < stages; ++stage) {
    programs.push_back(GenerateEvaluationOf(stage, stages, micro_batches));
  }
  return programs;
}

}  // namespace longhaul::schedule
