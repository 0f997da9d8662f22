// The device groups of a shape: which replica of which stage each is, what micro-batches it takes,
// and whom it exchanges frames with.
#ifndef LONGHAUL_SCHEDULE_GROUPS_H_
#define LONGHAUL_SCHEDULE_GROUPS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// InvalidArgument says what contradicts itself. Replicas without a micro-batch are allowed only if
// `may_idle`, as in an evaluation, which may also have no micro-batches at all.
absl::Status CheckShape(const Shape& shape, bool may_idle = false);

// The shape that programs of all groups have, by their Forwards. InvalidArgument if they do not
// cover stages, replicas and micro-batches without gap or repeat.
absl::StatusOr<Shape> ShapeOf(const std::vector<Program>& programs);

// Immutable. Groups are numbered stage by stage, replica by replica.
class Groups {
 public:
  // `shape` has passed CheckShape.
  explicit Groups(const Shape& shape);

  int count() const { return static_cast<int>(stage_.size()); }
  int stages() const { return static_cast<int>(first_.size()) - 1; }
  int stage(int group) const { return stage_[group]; }
  int replica(int group) const { return group - first_[stage_[group]]; }
  int replicas(int stage) const { return first_[stage + 1] - first_[stage]; }
  // The stage's first replica.
  int Leader(int stage) const { return first_[stage]; }
  int GroupOf(int stage, int replica) const { return first_[stage] + replica; }
  // The group of `stage` that takes the micro-batch.
  int Owner(int stage, int micro_batch) const { return owner_[stage][micro_batch]; }
  // Of the group, ascending.
  const std::vector<int>& MicroBatches(int group) const { return micro_batches_[group]; }
  // The group at the other end of a frame: the owner of its micro-batch, or the leader for what
  // travels once a step. `instruction` is a send or a receive that its stage has.
  int Peer(const Instruction& instruction) const;
  // "stage 1", or "stage 1 replica 2" where the stage has several.
  std::string Name(int group) const;

 private:
  std::vector<int> first_;  // group of each stage's first replica; then the number of groups
  std::vector<int> stage_;  // by group
  std::vector<std::vector<int>> owner_;          // by stage and micro-batch
  std::vector<std::vector<int>> micro_batches_;  // by group
};

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_GROUPS_H_
