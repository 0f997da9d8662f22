#include "absl/strings/str_cat.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

bool IsSameProcess(const NodeFacts& a, const NodeFacts& b) {
  // A copied state folder gives two processes one incarnation; they still listen at two addresses.
  return a.incarnation == b.incarnation && a.data_address == b.data_address;
}

std::string DescribeConflict(const NodeRecord& node, const NodeConnected& event) {
  return absl::StrCat("two workers use the name ", node.facts.profile.name, ": ", node.address,
                      " and ", event.address, "; give one another name");
}

void RefuseConflict(Turn& turn, uint64_t session, const NodeRecord& node) {
  turn.Do(RefuseNode{session, absl::AlreadyExistsError(node.conflict), false});
}

void DeclareConflict(Turn& turn, NodeRecord& node, const NodeConnected& event) {
  node.conflict = DescribeConflict(node, event);
  node.conflict_until = turn.now + turn.state.options.lease;
  turn.Warn(node.conflict);
  RefuseConflict(turn, node.session, node);
  RefuseConflict(turn, event.session, node);
  DropSession(turn, node, node.conflict);
  const Place place = FindPlace(turn.state, node.facts.profile.name);
  if (place.run != nullptr && !place.progress().ended) {
    InterruptForLostNode(turn, *place.run, place.stage);
  }
}

void RefuseOlder(Turn& turn, const NodeRecord& node, const NodeConnected& event) {
  turn.Do(
      RefuseNode{event.session,
                 absl::FailedPreconditionError(absl::StrCat(
                     "the worker at ", event.address, " is incarnation ", event.facts.incarnation,
                     " of ", node.facts.profile.name, ", but incarnation ", node.facts.incarnation,
                     " at ", node.address, " is newer; stop one of them or give one another name")),
                 false});
}

}  // namespace

Admission Admit(Turn& turn, NodeRecord& node, const NodeConnected& event) {
  if (turn.now < node.conflict_until) {
    RefuseConflict(turn, event.session, node);
    return Admission::kRefused;
  }
  node.conflict.clear();
  const uint64_t known = node.facts.incarnation;
  if (event.facts.incarnation < known) {
    RefuseOlder(turn, node, event);
    return Admission::kRefused;
  }
  if (event.facts.incarnation == known && event.session <= node.session) {
    turn.Do(RefuseNode{event.session,
                       absl::AbortedError("a newer control stream of this worker is in force"),
                       true});
    return Admission::kRefused;
  }
  const bool same = IsSameProcess(event.facts, node.facts);
  if (node.session != 0 && !same) {
    if (event.facts.incarnation == known) {
      // Not a newer start of the same worker but a copy of it: the one that is here stays.
      turn.Warn(DescribeConflict(node, event));
      turn.Do(RefuseNode{event.session, absl::AlreadyExistsError(DescribeConflict(node, event)),
                         false});
      return Admission::kRefused;
    }
    if (turn.now - node.taken_over_at <= turn.state.options.lease) {
      DeclareConflict(turn, node, event);
      return Admission::kRefused;
    }
    node.taken_over_at = turn.now;
  }
  if (node.session != 0) {
    // The same process ends its own older stream; another process must not come back.
    turn.Do(RefuseNode{node.session,
                       absl::AbortedError(absl::StrCat(
                           "the name ", node.facts.profile.name, " was taken over by ",
                           event.address, ", incarnation ", event.facts.incarnation,
                           "; if that is another worker, give one of them another name")),
                       same});
  }
  return same ? Admission::kSameProcess : Admission::kNewProcess;
}

}  // namespace longhaul::coordinator
