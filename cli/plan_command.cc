// longhaul plan FILE.yaml [--topology FILE.yaml]
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/submit.h"
#include "coordinator/plan/card_sharing.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/planner.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

constexpr uint64_t kTopologyBytesMax = 16 << 20;

struct PlanOptions {
  std::string file;
  std::string topology;
};

coordinator::NodeProfile ProfileOf(const v1::NodeSummary& node) {
  coordinator::NodeProfile profile;
  profile.name = node.node();
  profile.site = node.site();
  profile.host = node.host();
  profile.host_cores = static_cast<int>(node.host_cores());
  profile.flops_per_second = node.flops_per_second();
  profile.bytes_per_second = node.bytes_per_second();
  profile.threads = static_cast<int>(node.threads());
  profile.memory_bytes = node.memory_bytes();
  profile.process_bytes = node.process_bytes();
  profile.trusted_network = node.trusted_network();
  profile.numeric_class = node.numeric_class();
  profile.bfloat16_flops_per_second = node.bfloat16_flops_per_second();
  if (node.device_kind() == coordinator::NameOf(coordinator::DeviceKind::kCuda)) {
    profile.device_kind = coordinator::DeviceKind::kCuda;
  }
  profile.device_name = node.device_name();
  profile.device_uuid = node.card().uuid();
  profile.device_memory_bytes = node.card().memory_bytes();
  return profile;
}

coordinator::LinkProfile ProfileOf(const v1::LinkSummary& link) {
  return {link.from(), link.to(), link.latency_seconds(), link.bytes_per_second()};
}

// The connected nodes that are free, as a run would get them; the busy ones too where none is free.
// Says on stderr which it was.
void TakeNodes(const v1::ListNodesResponse& nodes, coordinator::PlanRequest& request) {
  std::vector<const v1::NodeSummary*> connected;
  std::vector<coordinator::NodeProfile> profiles;
  for (const v1::NodeSummary& node : nodes.nodes()) {
    if (node.state() != "connected") continue;
    connected.push_back(&node);
    profiles.push_back(ProfileOf(node));
  }
  coordinator::ShareCardMemory(profiles);
  std::vector<coordinator::NodeProfile> busy;
  std::vector<std::string> names;
  for (size_t i = 0; i < connected.size(); ++i) {
    const std::string& run = connected[i]->run();
    (run.empty() ? request.nodes : busy).push_back(std::move(profiles[i]));
    if (!run.empty()) names.push_back(absl::StrCat(connected[i]->node(), " (run ", run, ")"));
  }
  if (busy.empty()) return;
  const bool all_busy = request.nodes.empty();
  std::fprintf(stderr, "longhaul: %s: %s\n",
               all_busy ? "every node is busy; planned as if they were free"
                        : "planned without the busy nodes",
               Printable(absl::StrJoin(names, ", ")).c_str());
  if (all_busy) request.nodes = std::move(busy);
}

// The nodes and links of a file, or those of the cluster.
absl::Status FindNodes(const Context& context, const PlanOptions& options,
                       coordinator::PlanRequest& request) {
  if (!options.topology.empty()) {
    LH_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.topology, kTopologyBytesMax));
    LH_ASSIGN_OR_RETURN(coordinator::Topology topology,
                        coordinator::ParseTopology(text, options.topology));
    request.nodes = std::move(topology.nodes);
    request.links = std::move(topology.links);
    return absl::OkStatus();
  }
  LH_ASSIGN_OR_RETURN(const auto client, Client::Connect(context));
  LH_ASSIGN_OR_RETURN(const v1::ListNodesResponse nodes, client->ListNodes());
  TakeNodes(nodes, request);
  for (const v1::LinkSummary& link : nodes.links()) request.links.push_back(ProfileOf(link));
  return absl::OkStatus();
}

int Plan(Context& context, const PlanOptions& options) {
  coordinator::PlanRequest request;
  auto spec = ReadRunFile(options.file);
  if (!spec.ok()) return Fail(spec.status());
  request.spec = *std::move(spec);
  request.stages = static_cast<int>(request.spec.stages);
  if (absl::Status status = FindNodes(context, options, request); !status.ok()) {
    return Fail(status);
  }
  auto plan = coordinator::MakePlan(request);
  if (!plan.ok()) return Fail(plan.status());
  if (context.json()) {
    Print(absl::StrCat(coordinator::PlanToJson(*plan), "\n"));
  } else {
    Print(Printable(coordinator::PlanToText(*plan, request)));
  }
  return kExitDone;
}

}  // namespace

void RegisterPlanCommand(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* plan =
      app.add_subcommand("plan", "the plan for a run, its predicted step time, and why");
  AddCommonOptions(*plan, context);
  auto options = std::make_shared<PlanOptions>();
  plan->add_option("file", options->file, "the run's file (YAML)")->required();
  plan->add_option("--topology", options->topology,
                   "nodes and links from this file (docs/formats.md) instead of the cluster");
  plan->callback(
      [&chosen, options] { chosen = [options](Context& c) { return Plan(c, *options); }; });
}

}  // namespace longhaul::cli
