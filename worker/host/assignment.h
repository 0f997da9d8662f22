// An assignment checked against itself, and everything that follows from it.
#ifndef LONGHAUL_WORKER_HOST_ASSIGNMENT_H_
#define LONGHAUL_WORKER_HOST_ASSIGNMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"
#include "schedule/program.h"
#include "worker/comm/exchange.h"
#include "worker/host/messages.h"

namespace longhaul::worker {

// What a stage needs to know before it allocates anything.
struct StagePlan {
  model::Graph graph;
  std::vector<model::OpRange> ranges;  // of all stages
  int stage = 0, replica = 0;          // of this device group
  int micro_batches = 0;               // of a step that this group takes
  schedule::Shape shape;
  schedule::Program program;  // of this group
  schedule::Shape evaluation_shape;
  schedule::Program evaluation_program;
  // To neighbouring stages, between the ends of a tied table, and to the other replicas.
  std::vector<LinkOptions> links;
  std::vector<std::string> names;  // by group: "stage 1 replica 2"
  // Of this stage, with node and address; empty: it has one.
  std::vector<std::string> replica_names;
  bool is_first = false, is_last = false;  // of its stage
};

// Of the validation part; its program is kept in memory.
inline constexpr int64_t kValidationMicroBatchesMax = 4'000'000;

// Builds the graph, checks that the stages cover it by legal cuts, generates the programs and
// replays them. `validation_micro_batches` 0: no evaluation. InvalidArgument or FailedPrecondition
// says which part of the assignment is wrong.
absl::StatusOr<StagePlan> MakeStagePlan(const Assignment& assignment,
                                        int64_t validation_micro_batches, int connections);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_ASSIGNMENT_H_
