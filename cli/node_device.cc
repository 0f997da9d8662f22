#include "cli/node_device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Kind(const v1::NodeSummary& node) {
  return node.device_kind().empty() ? "cpu" : node.device_kind();
}

std::string Memory(const v1::NodeSummary& node) {
  const std::string usable = FormatBytes(static_cast<double>(node.memory_bytes()));
  if (node.card().memory_bytes() == 0) return usable;
  return absl::StrCat(usable, " of the card's ",
                      FormatBytes(static_cast<double>(node.card().memory_bytes())));
}

void AddCard(const v1::CardFacts& card, Rows& rows) {
  const auto add = [&rows](const char* label, const std::string& value) {
    if (!value.empty()) rows.push_back({label, value});
  };
  add("compute capability", card.compute_capability());
  add("driver", card.driver());
  add("card", card.uuid());
  add("PCI bus", card.pci_bus_id());
}

void AddReadings(const v1::CardReadings& now, Rows& rows) {
  if (now.has_temperature_celsius()) {
    rows.push_back({"temperature", absl::StrFormat("%.0f °C", now.temperature_celsius())});
  }
  if (now.has_power_watts()) {
    rows.push_back({"power", absl::StrFormat("%.0f W", now.power_watts())});
  }
  if (now.has_core_megahertz()) {
    rows.push_back({"clock", absl::StrFormat("%.0f MHz", now.core_megahertz())});
  }
  if (now.has_memory_megahertz()) {
    rows.push_back({"memory clock", absl::StrFormat("%.0f MHz", now.memory_megahertz())});
  }
  if (now.has_utilization()) {
    rows.push_back({"busy", absl::StrFormat("%.0f %% of the time", 100 * now.utilization())});
  }
  if (now.has_memory_used_bytes()) {
    rows.push_back(
        {"card's memory in use", FormatBytes(static_cast<double>(now.memory_used_bytes()))});
  }
  if (now.has_uncorrected_errors()) {
    rows.push_back({"uncorrected errors", absl::StrCat(now.uncorrected_errors())});
  }
}

nlohmann::ordered_json ReadingsToJson(const v1::CardReadings& now) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (now.has_temperature_celsius()) json["temperature_celsius"] = now.temperature_celsius();
  if (now.has_power_watts()) json["power_watts"] = now.power_watts();
  if (now.has_core_megahertz()) json["core_megahertz"] = now.core_megahertz();
  if (now.has_memory_megahertz()) json["memory_megahertz"] = now.memory_megahertz();
  if (now.has_utilization()) json["utilization"] = now.utilization();
  if (now.has_memory_used_bytes()) json["memory_used_bytes"] = now.memory_used_bytes();
  if (now.has_uncorrected_errors()) json["uncorrected_errors"] = now.uncorrected_errors();
  return json;
}

}  // namespace

std::string DeviceInShort(const v1::NodeSummary& node) {
  const bool is_card = Kind(node) != "cpu" && !node.device_name().empty();
  return is_card ? node.device_name() : Kind(node);
}

Rows DeviceRows(const v1::NodeSummary& node) {
  Rows rows = {{"device", absl::StrCat(Kind(node), node.device_name().empty() ? "" : ": ",
                                       node.device_name())}};
  if (node.has_card()) AddCard(node.card(), rows);
  rows.push_back({"matrix rate", absl::StrFormat("%.1f GFLOP/s", node.flops_per_second() / 1e9)});
  if (node.bfloat16_flops_per_second() > 0) {
    rows.push_back({"matrix rate, bf16",
                    absl::StrFormat("%.1f GFLOP/s", node.bfloat16_flops_per_second() / 1e9)});
  }
  rows.push_back({"memory", Memory(node)});
  rows.push_back({"memory rate", absl::StrCat(FormatBytes(node.bytes_per_second()), "/s")});
  if (node.has_card_readings()) AddReadings(node.card_readings(), rows);
  return rows;
}

nlohmann::ordered_json DeviceToJson(const v1::NodeSummary& node) {
  nlohmann::ordered_json json = {{"kind", Kind(node)}};
  if (!node.device_name().empty()) json["name"] = node.device_name();
  if (node.has_card()) {
    const v1::CardFacts& card = node.card();
    json["card"] = {{"compute_capability", card.compute_capability()},
                    {"driver", card.driver()},
                    {"uuid", card.uuid()},
                    {"pci_bus_id", card.pci_bus_id()},
                    {"memory_bytes", card.memory_bytes()}};
  }
  if (node.has_card_readings()) json["readings"] = ReadingsToJson(node.card_readings());
  return json;
}

}  // namespace longhaul::cli
