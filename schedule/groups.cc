#include "schedule/groups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace longhaul::schedule {
namespace {

absl::Status CheckOwners(const Shape& shape, int stage, bool may_idle) {
  const std::vector<int>& owners = shape.owners[stage];
  const int replicas = shape.replicas[stage];
  if (owners.size() != static_cast<size_t>(shape.micro_batches)) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " of a shape has owners of ",
                                                   owners.size(), " of ", shape.micro_batches,
                                                   " micro-batches"));
  }
  std::vector<int> shares(std::max(replicas, 0), 0);
  for (const int owner : owners) {
    if (owner < 0 || owner >= replicas) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " of a shape has ", replicas,
                                                     " replicas, and an owner ", owner));
    }
    ++shares[owner];
  }
  const auto idle = std::find(shares.begin(), shares.end(), 0);
  if (may_idle || idle == shares.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "stage ", stage, " replica ", idle - shares.begin(), " of a shape has no micro-batch"));
}

}  // namespace

absl::Status CheckShape(const Shape& shape, bool may_idle) {
  if (shape.stages < 1 || shape.micro_batches < (may_idle ? 0 : 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a schedule needs at least one stage and one micro-batch, not ", shape.stages,
                     " stages and ", shape.micro_batches, " micro-batches"));
  }
  if (shape.replicas.empty() && shape.owners.empty()) return absl::OkStatus();
  const size_t stages = static_cast<size_t>(shape.stages);
  if (shape.replicas.size() != stages || shape.owners.size() != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape of ", stages, " stages has replicas of ", shape.replicas.size(),
                     " and owners of ", shape.owners.size()));
  }
  for (int stage = 0; stage < shape.stages; ++stage) {
    if (shape.replicas[stage] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, " of a shape has ", shape.replicas[stage], " replicas"));
    }
    LH_RETURN_IF_ERROR(CheckOwners(shape, stage, may_idle));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ShapeOf(const std::vector<Program>& programs) {
  Shape shape{.stages = 0, .micro_batches = 0};
  std::vector<std::vector<std::pair<int, int>>> forwards;  // by stage: micro-batch and replica
  for (const Program& program : programs) {
    const bool next_stage = program.stage == shape.stages && program.replica == 0;
    const bool next_replica = program.stage == shape.stages - 1 && shape.stages > 0 &&
                              program.replica == shape.replicas.back();
    if (!next_stage && !next_replica) {
      return absl::InvalidArgumentError(absl::StrCat("the program of stage ", program.stage,
                                                     " replica ", program.replica,
                                                     " is not in its "
                                                     "place"));
    }
    if (next_stage) {
      ++shape.stages;
      shape.replicas.push_back(0);
      forwards.emplace_back();
    }
    ++shape.replicas.back();
    for (const Instruction& instruction : program.instructions) {
      shape.tied = shape.tied || instruction.kind == InstructionKind::kSendTiedGradient;
      if (instruction.kind != InstructionKind::kForward) continue;
      forwards.back().emplace_back(instruction.micro_batch, program.replica);
    }
  }
  for (std::vector<std::pair<int, int>>& pairs : forwards) {
    std::sort(pairs.begin(), pairs.end());
    std::vector<int>& owners = shape.owners.emplace_back();
    for (const auto& [micro_batch, replica] : pairs) {
      if (micro_batch != static_cast<int>(owners.size())) break;
      owners.push_back(replica);
    }
    shape.micro_batches = static_cast<int>(forwards.front().size());
    if (owners.size() == pairs.size() && owners.size() == shape.owners.front().size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the programs of stage ", shape.owners.size() - 1, " do not have each micro-batch once"));
  }
  LH_RETURN_IF_ERROR(CheckShape(shape, /*may_idle=*/true));
  return shape;
}

Groups::Groups(const Shape& shape) {
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int replicas = shape.replicas.empty() ? 1 : shape.replicas[stage];
    const int first = count();
    first_.push_back(first);
    stage_.insert(stage_.end(), replicas, stage);
    micro_batches_.resize(stage_.size());
    std::vector<int>& owners = owner_.emplace_back();
    for (int m = 0; m < shape.micro_batches; ++m) {
      owners.push_back(first + (shape.owners.empty() ? 0 : shape.owners[stage][m]));
      micro_batches_[owners.back()].push_back(m);
    }
  }
  first_.push_back(count());
}

int Groups::Peer(const Instruction& instruction) const {
  const KindInfo& info = Info(instruction.kind);
  const int peer = PeerStage(instruction.kind, instruction.stage, stages());
  LH_CHECK(peer >= 0 && peer < stages(), ToText(instruction), " of stage ", instruction.stage);
  return info.per_micro_batch ? Owner(peer, instruction.micro_batch) : Leader(peer);
}

std::string Groups::Name(int group) const {
  const std::string name = absl::StrCat("stage ", stage(group));
  if (replicas(stage(group)) == 1) return name;
  return absl::StrCat(name, " replica ", replica(group));
}

}  // namespace longhaul::schedule
