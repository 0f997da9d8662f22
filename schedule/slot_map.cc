#include <algorithm>
#include <vector>

#include "base/check.h"
#include "schedule/program.h"

namespace longhaul::schedule {

SlotMap::SlotMap(const Program& program) {
  std::vector<int> own;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind == InstructionKind::kForward) own.push_back(instruction.micro_batch);
  }
  std::sort(own.begin(), own.end());
  if (own.empty()) return;
  slots_.resize(own.back() + 1, -1);
  for (size_t position = 0; position < own.size(); ++position) {
    slots_[own[position]] = static_cast<int>(position) % program.slots;
  }
}

int SlotMap::Of(int micro_batch) const {
  LH_CHECK(micro_batch >= 0 && static_cast<size_t>(micro_batch) < slots_.size() &&
               slots_[micro_batch] >= 0,
           "micro-batch ", micro_batch, " is not of this program");
  return slots_[micro_batch];
}

}  // namespace longhaul::schedule
