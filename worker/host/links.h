// Whom a device group exchanges what with.
#ifndef LONGHAUL_WORKER_HOST_LINKS_H_
#define LONGHAUL_WORKER_HOST_LINKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"
#include "schedule/program.h"
#include "worker/comm/exchange.h"
#include "worker/host/messages.h"

namespace longhaul::worker {

// Of all device groups; checked, and all of it outlives the facts.
struct LinkFacts {
  const model::Graph& graph;
  const std::vector<model::OpRange>& ranges;  // by stage
  const schedule::Shape& shape;
  const schedule::Shape& evaluation_shape;         // without micro-batches: nothing is evaluated
  const std::vector<schedule::Program>& programs;  // by group
  const std::vector<StagePeer>& groups;
  const std::vector<std::string>& codecs;  // by stage, of the link to the next one
  int64_t micro_batch = 0;
  int connections = 1;
};

// The links of group `self`, by peer ascending: to the groups of neighbouring stages that it ever
// exchanges a frame with, between the ends of a tied table, and to the other replicas of its stage,
// which hear signs of life over them.
std::vector<LinkOptions> MakeLinks(const LinkFacts& facts, int self);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_LINKS_H_
