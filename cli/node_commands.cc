// longhaul node ls|show|drain
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/node_device.h"
#include "cli/output.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

nlohmann::ordered_json NodeToJson(const v1::NodeSummary& node) {
  nlohmann::ordered_json object = {{"node", node.node()},
                                   {"site", node.site()},
                                   {"state", node.state()},
                                   {"reason", node.reason()},
                                   {"host", node.host()},
                                   {"device", DeviceToJson(node)},
                                   {"threads", node.threads()},
                                   {"memory_bytes", node.memory_bytes()},
                                   {"process_bytes", node.process_bytes()},
                                   {"flops_per_second", node.flops_per_second()},
                                   {"bfloat16_flops_per_second", node.bfloat16_flops_per_second()},
                                   {"bytes_per_second", node.bytes_per_second()},
                                   {"numeric_class", node.numeric_class()},
                                   {"data_address", node.data_address()},
                                   {"trusted_network", node.trusted_network()},
                                   {"version", node.version()},
                                   {"incarnation", node.incarnation()},
                                   {"lease_seconds_left", node.lease_seconds_left()}};
  if (!node.run().empty()) {
    object["run"] = node.run();
    object["stage"] = node.stage();
    object["replica"] = node.replica();
  }
  return object;
}

std::string Work(const v1::NodeSummary& node) {
  if (node.run().empty()) return "-";
  const std::string stage = absl::StrCat(node.run(), " stage ", node.stage());
  return node.replicated() ? absl::StrCat(stage, " replica ", node.replica()) : stage;
}

int List(Context& context) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto nodes = (*client)->ListNodes();
  if (!nodes.ok()) return Fail(nodes.status());
  if (context.json()) {
    for (const v1::NodeSummary& node : nodes->nodes()) PrintJsonLine(NodeToJson(node));
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "SITE", "STATE", "DEVICE", "THREADS", "GFLOP/S", "MEMORY", "WORK", "REASON"}};
  for (const v1::NodeSummary& node : nodes->nodes()) {
    rows.push_back(
        {node.node(), node.site(), node.state(), DeviceInShort(node), absl::StrCat(node.threads()),
         absl::StrFormat("%.1f", node.flops_per_second() / 1e9),
         FormatBytes(static_cast<double>(node.memory_bytes())), Work(node), node.reason()});
  }
  PrintTable(rows);
  return kExitDone;
}

void PrintNode(const v1::NodeSummary& node) {
  std::vector<std::vector<std::string>> rows = {
      {"node", node.node()},
      {"site", node.site()},
      {"state", absl::StrCat(node.state(), node.reason().empty() ? "" : ": ", node.reason())},
      {"work", Work(node)},
      {"host", node.host()}};
  for (std::vector<std::string>& row : DeviceRows(node)) rows.push_back(std::move(row));
  const std::vector<std::vector<std::string>> rest = {
      {"threads", absl::StrCat(node.threads())},
      {"process without a stage",
       node.process_bytes() > 0 ? FormatBytes(static_cast<double>(node.process_bytes())) : "-"},
      {"numeric class", node.numeric_class()},
      {"data address", node.data_address()},
      {"trusted network", node.trusted_network() ? "yes" : "no"},
      {"version", node.version()},
      {"incarnation", absl::StrCat(node.incarnation())},
      {"lease left", FormatSeconds(node.lease_seconds_left())}};
  rows.insert(rows.end(), rest.begin(), rest.end());
  PrintTable(rows);
}

int Show(Context& context, const std::string& name) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto node = (*client)->ShowNode(name);
  if (!node.ok()) return Fail(node.status());
  if (context.json()) {
    PrintJsonLine(NodeToJson(*node));
  } else {
    PrintNode(*node);
  }
  return kExitDone;
}

int Drain(Context& context, const std::string& name) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto text = (*client)->DrainNode(name);
  if (!text.ok()) return Fail(text.status());
  if (context.json()) {
    PrintJsonLine({{"node", name}, {"text", *text}});
  } else {
    Print(absl::StrCat(Printable(*text), "\n"));
  }
  return kExitDone;
}

}  // namespace

void RegisterNodeCommands(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* node = app.add_subcommand("node", "list, show and drain nodes");
  node->require_subcommand(1);
  auto name = std::make_shared<std::string>();

  CLI::App* list = node->add_subcommand("ls", "list all nodes");
  AddCommonOptions(*list, context);
  list->callback([&chosen] { chosen = List; });

  CLI::App* show = node->add_subcommand("show", "everything known of a node");
  AddCommonOptions(*show, context);
  show->add_option("node", *name, "name of the node")->required();
  show->callback([&chosen, name] { chosen = [name](Context& c) { return Show(c, *name); }; });

  CLI::App* drain = node->add_subcommand(
      "drain", "take a node out: its run goes on without it from the next step boundary");
  AddCommonOptions(*drain, context);
  drain->add_option("node", *name, "name of the node")->required();
  drain->callback([&chosen, name] { chosen = [name](Context& c) { return Drain(c, *name); }; });
}

}  // namespace longhaul::cli
