// Topology files: `longhaul plan --topology`. The format is in docs/formats.md.
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/planner.h"
#include "run/fields.h"

namespace longhaul::coordinator {
namespace {

constexpr size_t kNodesMax = 4096;
constexpr size_t kLinksMax = 65536;
constexpr int64_t kCoresMax = 65536;
constexpr int64_t kMebibytesMax = int64_t{1} << 30;
// A hundred thousand times beyond any machine or line, so that no prediction overflows.
constexpr double kGigaflopsMin = 1e-3, kGigaflopsMax = 1e9;
constexpr double kGigabytesMin = 1e-3, kGigabytesMax = 1e6;
constexpr double kMegabitsMin = 1e-3, kMegabitsMax = 1e9;
constexpr double kMillisecondsMax = 1e6;

// As written, before units are converted.
struct NodeEntry {
  std::string name, site, host, numeric_class, card;
  DeviceKind device = DeviceKind::kCpu;
  int64_t host_cores = 0;
  int64_t threads = 1;
  double gigaflops = 0;
  double bf16_gigaflops = 0;
  double gigabytes_per_second = 10;
  int64_t mebibytes = 0;
  bool trusted_network = true;
};
struct LinkEntry {
  std::string from, to;
  double latency_milliseconds = 0;
  double megabits_per_second = 0;
};

std::vector<run::Field> FieldsOf(NodeEntry& node) {
  constexpr auto kRequired = run::Presence::kRequired;
  return {
      {"name", run::Text{&node.name}, kRequired},
      {"site", run::Text{&node.site}, kRequired},
      {"host", run::Text{&node.host}},
      {"host_cores", run::Whole{&node.host_cores, 1, kCoresMax}},
      {"threads", run::Whole{&node.threads, 1, kCoresMax}},
      {"gigaflops", run::Real{&node.gigaflops, kGigaflopsMin, kGigaflopsMax}, kRequired},
      {"device", run::Enum(&node.device, {NameOf(DeviceKind::kCpu), NameOf(DeviceKind::kCuda)})},
      {"bf16_gigaflops", run::Real{&node.bf16_gigaflops, kGigaflopsMin, kGigaflopsMax}},
      {"card", run::Text{&node.card}},
      {"memory_gigabytes_per_second",
       run::Real{&node.gigabytes_per_second, kGigabytesMin, kGigabytesMax}},
      {"memory_mebibytes", run::Whole{&node.mebibytes, 1, kMebibytesMax}, kRequired},
      {"numeric_class", run::Text{&node.numeric_class}},
      {"trusted_network", run::Flag{&node.trusted_network}}};
}

std::vector<run::Field> FieldsOf(LinkEntry& link) {
  return {
      {"from", run::Text{&link.from}, run::Presence::kRequired},
      {"to", run::Text{&link.to}, run::Presence::kRequired},
      {"latency_milliseconds", run::Real{&link.latency_milliseconds, 0, kMillisecondsMax}},
      {"megabits_per_second", run::Real{&link.megabits_per_second, kMegabitsMin, kMegabitsMax}}};
}

NodeProfile ProfileOf(const NodeEntry& entry) {
  return {.name = entry.name,
          .site = entry.site,
          .host = entry.host,
          .host_cores = static_cast<int>(entry.host_cores),
          .flops_per_second = entry.gigaflops * 1e9,
          .bfloat16_flops_per_second = entry.bf16_gigaflops * 1e9,
          .bytes_per_second = entry.gigabytes_per_second * 1e9,
          .threads = static_cast<int>(entry.threads),
          .memory_bytes = entry.mebibytes << 20,
          .numeric_class = entry.numeric_class.empty() && entry.device == DeviceKind::kCuda
                               ? NameOf(entry.device)
                               : entry.numeric_class,
          .trusted_network = entry.trusted_network,
          .device_kind = entry.device,
          .device_uuid = entry.card};
}

LinkProfile ProfileOf(const LinkEntry& entry) {
  return {.from_site = entry.from,
          .to_site = entry.to,
          .latency_seconds = entry.latency_milliseconds * 1e-3,
          .bytes_per_second = entry.megabits_per_second * 1e6 / 8};
}

absl::Status ErrorAt(const run::KeyLines& lines, const std::string& key,
                     absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(lines.Where(key), ": '", key, "': ", message));
}

// What only cards have, and must.
absl::Status CheckDevice(const NodeEntry& node, const std::string& key,
                         const run::KeyLines& lines) {
  if (node.device == DeviceKind::kCuda) {
    if (node.bf16_gigaflops > 0) return absl::OkStatus();
    return ErrorAt(lines, key + ".device", "a card needs 'bf16_gigaflops' too, its rate in bf16");
  }
  for (const auto& [name, given] :
       {std::pair{".bf16_gigaflops", node.bf16_gigaflops > 0}, {".card", !node.card.empty()}}) {
    if (given) return ErrorAt(lines, key + name, "is for nodes with 'device: cuda' only");
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const std::deque<NodeEntry>& nodes, const run::KeyLines& lines) {
  if (nodes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(lines.Where("nodes"), ": 'nodes': expected at least one node"));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string key = absl::StrCat("nodes[", i, "]");
    if (const absl::Status name = ValidateName("node name", nodes[i].name); !name.ok()) {
      return ErrorAt(lines, key + ".name", name.message());
    }
    if (const absl::Status site = ValidateName("site name", nodes[i].site); !site.ok()) {
      return ErrorAt(lines, key + ".site", site.message());
    }
    if (!names.insert(nodes[i].name).second) {
      return ErrorAt(lines, key + ".name", absl::StrCat("'", nodes[i].name, "' is given twice"));
    }
    LH_RETURN_IF_ERROR(CheckDevice(nodes[i], key, lines));
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const std::deque<LinkEntry>& links, const std::deque<NodeEntry>& nodes,
                        const run::KeyLines& lines) {
  std::set<std::string> sites;
  for (const NodeEntry& node : nodes) sites.insert(node.site);
  std::set<std::pair<std::string, std::string>> known;
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkEntry& link = links[i];
    const std::string key = absl::StrCat("links[", i, "]");
    const std::pair<const char*, const std::string*> ends[] = {{".from", &link.from},
                                                               {".to", &link.to}};
    for (const auto& [end, site] : ends) {
      if (sites.count(*site) == 0) {
        return ErrorAt(lines, key + end, absl::StrCat("no node has the site '", *site, "'"));
      }
    }
    if (!known.insert({link.from, link.to}).second) {
      return ErrorAt(lines, key,
                     absl::StrCat("the link from ", link.from, " to ", link.to, " is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Topology> ParseTopology(absl::string_view yaml, absl::string_view file_name) {
  std::deque<NodeEntry> nodes;  // deques, since tables of fields point into them
  std::deque<LinkEntry> links;
  const std::vector<run::Field> fields = {
      {"nodes", run::Maps{kNodesMax, [&] { return FieldsOf(nodes.emplace_back()); }},
       run::Presence::kRequired},
      {"links", run::Maps{kLinksMax, [&] { return FieldsOf(links.emplace_back()); }}}};
  LH_ASSIGN_OR_RETURN(const run::KeyLines lines, run::ReadYaml(yaml, file_name, fields));
  LH_RETURN_IF_ERROR(CheckNodes(nodes, lines));
  LH_RETURN_IF_ERROR(CheckLinks(links, nodes, lines));
  Topology topology;
  for (const NodeEntry& node : nodes) topology.nodes.push_back(ProfileOf(node));
  for (const LinkEntry& link : links) topology.links.push_back(ProfileOf(link));
  return topology;
}

}  // namespace longhaul::coordinator
