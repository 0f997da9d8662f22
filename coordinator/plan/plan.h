// Plans: who runs which stage, and why. Pure data; the planner that makes them is in planner.h.
#ifndef LONGHAUL_COORDINATOR_PLAN_PLAN_H_
#define LONGHAUL_COORDINATOR_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/cost.h"
#include "model/graph.h"

namespace longhaul::coordinator {

// One device group: a stage, or one replica of it, on one node.
struct StagePlacement {
  std::string node;
  int replica = 0;        // 0 begins a stage; the others follow it
  int micro_batches = 0;  // of a step that this group takes; 0: all of them
  model::OpRange range;
  int slots = 1;
  bool recompute = false;  // activations inside blocks are made again in backward
  model::StageMemory memory;
  int64_t kept_memory_bytes = 0;  // with recomputation: what the stage would need without
  // Predicted, of one micro-batch, while all of the plan's nodes on the host work.
  double forward_seconds = 0;
  double backward_seconds = 0;
};

struct Plan {
  // By device group: stage by stage in pipeline order, replica by replica.
  std::vector<StagePlacement> stages;
  std::string schedule;                  // schedule/program.h name
  std::vector<std::string> link_codecs;  // link s is between stages s and s+1
  int wan_links = 0;                     // how many of them cross sites
  double step_seconds = 0;               // predicted, by simulation of the programs
  // Of the nodes in the plan, ascending; with several the bits depend on where each stage runs.
  std::vector<std::string> numeric_classes;
  std::vector<std::string> reasons;  // sentences for a person, most important first

  int StageCount() const;
  // Of a device group.
  int StageOf(int group) const;
  // Whether the group's stage has more replicas than one.
  bool IsReplicated(int group) const;
  // "stage 1", or "stage 1 replica 2" where the stage has several.
  std::string NameOf(int group) const;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_PLAN_H_
