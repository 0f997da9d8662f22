#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/core/turn.h"

namespace longhaul::coordinator {
namespace {

// The node as it is once a new control stream is in force.
void TakeSession(Turn& turn, NodeRecord& node, const NodeConnected& event, bool new_process) {
  const std::string& name = event.facts.profile.name;
  const NodeState before = node.state;
  if (node.state == NodeState::kLost) {
    node.state = NodeState::kConnected;
    node.reason = "connected";
  } else if (node.state != NodeState::kConnected && new_process) {
    node.state = NodeState::kConnected;
    node.reason = "usable again: its process was restarted after the drain";
  }
  node.facts = event.facts;
  node.address = event.address;
  node.session = event.session;
  node.lease_until = turn.now + turn.state.options.lease;
  node.leaving.clear();
  turn.state.joined_at = turn.now;
  node.reattach_until = absl::InfiniteFuture();
  if (new_process || before == NodeState::kDraining || before == NodeState::kDrained) {
    turn.Do(PersistNode{name});
  }
  if (new_process || before != node.state) {
    turn.Explain(absl::StrCat("node ", name, " at ", event.address, " is ",
                              NodeStateName(node.state), ", incarnation ",
                              event.facts.incarnation));
  }
  turn.Do(AcceptNode{event.session});
}

// Names and numbers of a worker go into messages, plans and the journal.
absl::Status CheckFacts(const NodeFacts& facts) {
  const NodeProfile& profile = facts.profile;
  LH_RETURN_IF_ERROR(ValidateName("worker name", profile.name));
  const bool sound = std::isfinite(profile.flops_per_second) && profile.flops_per_second >= 0 &&
                     std::isfinite(profile.bytes_per_second) && profile.bytes_per_second >= 0 &&
                     std::isfinite(profile.bfloat16_flops_per_second) &&
                     profile.bfloat16_flops_per_second >= 0 && profile.memory_bytes >= 0 &&
                     profile.process_bytes >= 0 && profile.device_memory_bytes >= 0 &&
                     profile.threads >= 0 && profile.host_cores >= 0;
  if (sound) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", profile.name,
                                                 " states a rate, memory or number of threads that "
                                                 "is negative or not finite"));
}

void WarnOfLoss(Turn& turn, const std::string& name, const std::string& reason) {
  turn.Warn(absl::StrCat("node ", name, " is lost: ", reason));
}

}  // namespace

void OnNodeConnected(Turn& turn, const NodeConnected& event) {
  const std::string& name = event.facts.profile.name;
  if (absl::Status valid = CheckFacts(event.facts); !valid.ok()) {
    turn.Do(RefuseNode{event.session, std::move(valid), false});
    return;
  }
  NodeRecord* node = FindNode(turn.state, name);
  bool new_process = true;
  if (node == nullptr) {
    node = &turn.state.nodes[name];
  } else {
    const Admission admission = Admit(turn, *node, event);
    if (admission == Admission::kRefused) return;
    new_process = admission == Admission::kNewProcess;
  }
  TakeSession(turn, *node, event, new_process);
  Attach(turn, *node, event.attachment, new_process);
}

void DropSession(Turn& turn, NodeRecord& node, const std::string& reason) {
  node.session = 0;
  node.card.reset();
  if (node.state == NodeState::kConnected) node.state = NodeState::kLost;
  if (node.state != NodeState::kDrained) node.reason = reason;
  const Place place = FindPlace(turn.state, node.facts.profile.name);
  if (place.run != nullptr) place.progress().attached = false;
}

void OnNodeDisconnected(Turn& turn, const NodeDisconnected& event) {
  NodeRecord* node = FindSession(turn.state, event.session);
  if (node == nullptr) return;
  const std::string& name = node->facts.profile.name;
  const std::string& told = node->leaving.empty() ? event.reason : node->leaving;
  const std::string what = node->leaving.empty() ? "its connection closed" : "its worker left";
  const std::string reason = told.empty() ? what : absl::StrCat(what, ": ", told);
  const Place place = FindPlace(turn.state, name);
  // A worker without work may come and go; one that fails closes its connection just the same.
  if (place.run == nullptr) {
    turn.Explain(absl::StrCat("node ", name, " has left: ", reason));
  } else {
    WarnOfLoss(turn, name, reason);
  }
  DropSession(turn, *node, reason);
  if (place.run == nullptr) {
    BlameLostNode(turn, *node);
  } else if (!place.progress().ended && place.run->phase != RunPhase::kAdopting) {
    node->reattach_until = turn.now + turn.state.options.reattach_grace;
  }
}

void OnNodeHeartbeat(Turn& turn, const NodeHeartbeat& event) {
  RenewLease(turn, event.session);
  NodeRecord* node = FindSession(turn.state, event.session);
  if (node == nullptr) return;
  if (event.card) node->card = event.card;
  if (!event.leaving.empty()) node->leaving = event.leaving;
}

void RenewLease(Turn& turn, uint64_t session) {
  NodeRecord* node = FindSession(turn.state, session);
  if (node != nullptr) node->lease_until = turn.now + turn.state.options.lease;
}

void ExpireLeases(Turn& turn) {
  for (auto& [name, node] : turn.state.nodes) {
    bool lost = false;
    if (node.session != 0 && turn.now > node.lease_until) {
      const std::string reason =
          absl::StrCat("silent for ", absl::FormatDuration(turn.state.options.lease));
      turn.Do(RefuseNode{
          node.session,
          absl::UnavailableError(absl::StrCat("this worker was ", reason, "; register again")),
          true});
      WarnOfLoss(turn, name, reason);
      DropSession(turn, node, reason);
      lost = true;
    }
    if (lost || turn.now >= node.reattach_until) {
      node.reattach_until = absl::InfiniteFuture();
      const Place place = FindPlace(turn.state, name);
      if (place.run == nullptr) {
        BlameLostNode(turn, node);
      } else if (!place.progress().ended) {
        InterruptForLostNode(turn, *place.run, place.stage);
      }
    }
  }
}

void FinishDrains(Turn& turn) {
  for (auto& [name, node] : turn.state.nodes) {
    if (node.state != NodeState::kDraining || FindPlace(turn.state, name).run != nullptr) continue;
    node.state = NodeState::kDrained;
    node.reason = "drained; restart its worker to use it again";
    turn.Do(PersistNode{name});
    turn.Explain(absl::StrCat("node ", name, " is drained"));
  }
}

}  // namespace longhaul::coordinator
