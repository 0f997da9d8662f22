// What the tests of the planner share.
#ifndef LONGHAUL_COORDINATOR_PLAN_TESTING_H_
#define LONGHAUL_COORDINATOR_PLAN_TESTING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/plan/planner.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {

// A GPT of a few million parameters: 4 layers unless changed, 8 micro-batches of 4 sequences.
inline run::RunSpec SmallRun() {
  run::RunSpec spec;
  spec.name = "first";
  spec.model = {.family = "gpt2",
                .layers = 4,
                .hidden = 128,
                .heads = 4,
                .context = 64,
                .vocab = 256,
                .tied = true};
  spec.train.steps = 10;
  spec.train.global_batch = 32;
  spec.train.micro_batch = 4;
  return spec;
}

// 50 GFLOP/s, one thread, 4 GiB, alone on a host of its own.
inline NodeProfile SomeNode(const std::string& name, const std::string& site) {
  return {.name = name,
          .site = site,
          .host = "host-of-" + name,
          .host_cores = 0,
          .flops_per_second = 50e9,
          .bytes_per_second = 10e9,
          .threads = 1,
          .memory_bytes = int64_t{4} << 30,
          .numeric_class = "avx2",
          .trusted_network = true};
}

// A card: in bf16 so many times as fast as SomeNode, in fp32 a tenth of that; 40 GiB.
inline NodeProfile SomeCard(const std::string& name, const std::string& site, double times) {
  NodeProfile node = SomeNode(name, site);
  node.flops_per_second *= times / 10;
  node.bfloat16_flops_per_second = 50e9 * times;
  node.bytes_per_second *= times;
  node.memory_bytes *= 10;
  node.numeric_class = "cuda";
  node.device_kind = DeviceKind::kCuda;
  return node;
}

inline PlanRequest SmallRequest(std::vector<NodeProfile> nodes, std::vector<LinkProfile> links = {},
                                int stages = 0) {
  PlanRequest request;
  request.spec = SmallRun();
  request.nodes = std::move(nodes);
  request.links = std::move(links);
  request.stages = stages;
  return request;
}

// Of a request that must have one.
inline Plan PlanOf(const PlanRequest& request) {
  const absl::StatusOr<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan{};
}

// Why there is none.
inline std::string RefusalOf(const PlanRequest& request) {
  const absl::StatusOr<Plan> plan = MakePlan(request);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition) << plan.status();
  return std::string(plan.status().message());
}

// Nodes n0, n1, ... of one site.
inline PlanRequest RequestOf(int nodes) {
  PlanRequest request = SmallRequest({});
  for (int i = 0; i < nodes; ++i) request.nodes.push_back(SomeNode(absl::StrCat("n", i), "east"));
  return request;
}

inline std::vector<std::string> NodesOf(const Plan& plan) {
  std::vector<std::string> nodes;
  for (const StagePlacement& stage : plan.stages) nodes.push_back(stage.node);
  return nodes;
}

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_TESTING_H_
