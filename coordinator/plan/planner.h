// The planner: from a run, nodes and links to a plan, or to a refusal with the numbers. Pure: equal
// requests give equal answers.
#ifndef LONGHAUL_COORDINATOR_PLAN_PLANNER_H_
#define LONGHAUL_COORDINATOR_PLAN_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/plan/plan.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// What computes on a node: its processor's cores, or one card.
enum class DeviceKind { kCpu, kCuda };

// What the planner knows of a node.
struct NodeProfile {
  std::string name;
  std::string site;
  std::string host;    // nodes with equal host share its cores
  int host_cores = 0;  // of `host`; 0: unknown, and then its nodes do not slow each other
  // Measured while no other node of the host worked.
  double flops_per_second = 0;           // matrix-product rate of the node's device, fp32
  double bfloat16_flops_per_second = 0;  // of a card in bf16; 0 of processors
  double bytes_per_second = 0;           // memory rate
  int threads = 1;
  int64_t memory_bytes = 0;   // available to the device
  int64_t process_bytes = 0;  // that the worker itself takes without a stage; 0: unknown
  std::string numeric_class;
  // Its site's network is trusted: only such nodes may be replicas, whose sums are not encrypted.
  bool trusted_network = false;
  DeviceKind device_kind = DeviceKind::kCpu;
  std::string device_name = "";  // of a card, for people
  std::string device_uuid = "";  // nodes with an equal one share the card; empty: nobody shares it
  int64_t device_memory_bytes = 0;  // of a whole card, whoever uses it; 0: unknown
};

// Directed; what is absent is assumed as kLanLink or kWanLink by whether the sites are equal.
struct LinkProfile {
  std::string from_site, to_site;
  double latency_seconds = 0;  // one way
  double bytes_per_second = 0;
};

struct PlanRequest {
  run::RunSpec spec;
  std::vector<NodeProfile> nodes;  // available ones, any order
  std::vector<LinkProfile> links;
  int stages = 0;  // 0: as many as pay
  // Continue a run whose numeric class is fixed; empty: the class whose plan is the fastest.
  std::string numeric_class;
};

// FailedPrecondition with numbers and remedy when the job does not fit: no node, more stages than
// cuts, nodes or those of one numeric class allow, memory (needed and available of each stage).
absl::StatusOr<Plan> MakePlan(const PlanRequest& request);

// A topology file (YAML) for planning without a cluster: nodes with site, rate, memory; links with
// latency and rate. Unknown keys are errors with line and nearest key.
struct Topology {
  std::vector<NodeProfile> nodes;
  std::vector<LinkProfile> links;
};
absl::StatusOr<Topology> ParseTopology(absl::string_view yaml, absl::string_view file_name);

// The plan as a person reads it: a table of stages, the predicted step time, the reasons.
std::string PlanToText(const Plan& plan, const PlanRequest& request);
// For the journal and for --output json; both ways.
std::string PlanToJson(const Plan& plan);
absl::StatusOr<Plan> PlanFromJson(absl::string_view json);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_PLANNER_H_
