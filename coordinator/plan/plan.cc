#include "coordinator/plan/plan.h"

#include "absl/strings/str_cat.h"

namespace longhaul::coordinator {

int Plan::StageCount() const {
  return stages.empty() ? 0 : StageOf(static_cast<int>(stages.size()) - 1) + 1;
}

int Plan::StageOf(int group) const {
  int stage = 0;
  for (int g = 1; g <= group; ++g) stage += stages[static_cast<size_t>(g)].replica == 0 ? 1 : 0;
  return stage;
}

bool Plan::IsReplicated(int group) const {
  const size_t next = static_cast<size_t>(group) + 1;
  return stages[static_cast<size_t>(group)].replica > 0 ||
         (next < stages.size() && stages[next].replica > 0);
}

std::string Plan::NameOf(int group) const {
  const std::string name = absl::StrCat("stage ", StageOf(group));
  if (!IsReplicated(group)) return name;
  return absl::StrCat(name, " replica ", stages[static_cast<size_t>(group)].replica);
}

}  // namespace longhaul::coordinator
