#include "worker/host/links.h"

#include <algorithm>
#include <cstdlib>

#include "base/limits.h"
#include "model/buffer_plan.h"
#include "model/stage_parameters.h"
#include "schedule/groups.h"
#include "schedule/replay.h"

namespace longhaul::worker {
namespace {

// Of which the pattern of whose evaluation micro-batches go to whom is seen whole: the least common
// multiple of two numbers of replicas is below it.
constexpr int kEvaluationPattern = kReplicasMax * kReplicasMax;

struct Layout {
  explicit Layout(const LinkFacts& facts)
      : training(facts.shape), evaluation(facts.evaluation_shape) {
    for (const int parameter : model::ParametersTiedAcross(facts.graph, facts.ranges)) {
      tied_elements = std::max(tied_elements, facts.graph.parameters[parameter].elements());
    }
  }
  const schedule::Groups training, evaluation;
  int64_t tied_elements = 0;  // 0: no table is tied across the ends
};

// Whether the two groups, of neighbouring stages, ever exchange a frame.
bool AreLinked(const Layout& layout, int self, int peer) {
  const schedule::Groups& training = layout.training;
  if (training.replica(self) == 0 && training.replica(peer) == 0) return true;
  const int stage = training.stage(peer);
  for (const int m : training.MicroBatches(self)) {
    if (training.Owner(stage, m) == peer) return true;
  }
  for (const int m : layout.evaluation.MicroBatches(self)) {
    if (m >= kEvaluationPattern) break;
    if (layout.evaluation.Owner(stage, m) == peer) return true;
  }
  return false;
}

// The link to group `peer`, both directions; `ends`: of a tied table.
LinkOptions MakeLink(const LinkFacts& facts, const Layout& layout, int self, int peer, bool ends) {
  const int stage = layout.training.stage(self);
  LinkOptions link;
  link.peer_group = peer;
  link.peer_stage = layout.training.stage(peer);
  link.peer_name = layout.training.Name(peer);
  link.peer_node = facts.groups[peer].node;
  link.peer_address = facts.groups[peer].data_address;
  link.tied_elements = static_cast<uint64_t>(ends ? layout.tied_elements : 0);
  link.connections = link.peer_stage == stage ? 1 : facts.connections;
  // Two numbers for each parameter: its index and its sum of squares.
  link.norms_max = 2 * facts.graph.parameters.size();
  if (std::abs(link.peer_stage - stage) == 1) {
    const int upstream = std::min(self, peer);
    const int upstream_stage = layout.training.stage(upstream);
    link.codec = facts.codecs[upstream_stage];
    link.tensor_elements = static_cast<uint64_t>(
        model::BoundaryElements(facts.graph, facts.ranges[upstream_stage].end, facts.micro_batch));
    link.window = schedule::LinkWindow(facts.programs, upstream);
  }
  return link;
}

}  // namespace

std::vector<LinkOptions> MakeLinks(const LinkFacts& facts, int self) {
  const Layout layout(facts);
  const schedule::Groups& training = layout.training;
  std::vector<LinkOptions> links;
  for (int peer = 0; peer < training.count(); ++peer) {
    const int distance = std::abs(training.stage(peer) - training.stage(self));
    const bool leaders = training.replica(self) == 0 && training.replica(peer) == 0;
    const bool ends =
        layout.tied_elements > 0 && leaders && distance > 0 && distance == training.stages() - 1;
    const bool next = distance == 1 && AreLinked(layout, self, peer);
    const bool replicas = distance == 0 && peer != self;
    if (ends || next || replicas) links.push_back(MakeLink(facts, layout, self, peer, ends));
  }
  return links;
}

}  // namespace longhaul::worker
