#include <vector>

#include "base/check.h"
#include "schedule/groups.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"

namespace longhaul::schedule {

Shape EvaluationShape(absl::Span<const int> replicas, int micro_batches) {
  Shape shape{.stages = static_cast<int>(replicas.size()), .micro_batches = micro_batches};
  for (const int count : replicas) {
    shape.replicas.push_back(count);
    std::vector<int>& owners = shape.owners.emplace_back();
    for (int m = 0; m < micro_batches; ++m) owners.push_back(m % count);
  }
  return shape;
}

Program GenerateEvaluationOf(const Shape& shape, int stage, int replica) {
  const absl::Status valid = CheckShape(shape, /*may_idle=*/true);
  LH_CHECK(valid.ok(), valid.ToString());
  const Groups groups(shape);
  LH_CHECK(stage >= 0 && stage < shape.stages && replica >= 0 && replica < groups.replicas(stage),
           "stage ", stage, " of ", shape.stages, ", replica ", replica);
  constexpr InstructionKind kKinds[] = {InstructionKind::kRecvActivation, InstructionKind::kForward,
                                        InstructionKind::kSendActivation};
  Program program{.stage = stage, .replica = replica, .slots = 1, .instructions = {}};
  for (const int m : groups.MicroBatches(groups.GroupOf(stage, replica))) {
    for (const InstructionKind kind : kKinds) {
      if (!EvaluationHas(kind, stage, shape)) continue;
      program.instructions.push_back({.kind = kind, .stage = stage, .micro_batch = m});
    }
  }
  if (EvaluationHas(InstructionKind::kReduceLosses, stage, shape)) {
    program.instructions.push_back({.kind = InstructionKind::kReduceLosses, .stage = stage});
  }
  return program;
}

}  // namespace longhaul::schedule
