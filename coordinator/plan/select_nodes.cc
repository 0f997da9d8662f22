#include "coordinator/plan/select_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "coordinator/plan/device.h"

namespace longhaul::coordinator {
namespace {

using Classes = std::map<std::string, std::vector<NodeProfile>>;

// Empty when the profile's numbers can be planned with.
std::string WhatIsWrong(const NodeProfile& node, model::Precision of_cards) {
  const auto bad_rate = [](double rate) { return !std::isfinite(rate) || rate <= 0; };
  if (bad_rate(node.flops_per_second)) {
    return absl::StrCat("flops_per_second is ", node.flops_per_second);
  }
  if (bad_rate(FlopsPerSecond(node, of_cards))) {
    return absl::StrCat("bfloat16_flops_per_second is ", node.bfloat16_flops_per_second);
  }
  if (bad_rate(node.bytes_per_second)) {
    return absl::StrCat("bytes_per_second is ", node.bytes_per_second);
  }
  if (node.threads < 1) return absl::StrCat("threads is ", node.threads);
  return "";
}

// The classes of at least `needed` nodes that are tried: those with the most arithmetic, and the
// one with the most nodes. The one with the most nodes is first, then the one with the most
// arithmetic, then by name.
std::vector<std::string> ClassesTried(const Classes& classes, size_t needed,
                                      model::Precision of_cards) {
  struct Worth {
    std::string name;
    size_t nodes = 0;
    double rate = 0;
  };
  std::vector<Worth> order;
  for (const auto& [name, nodes] : classes) {
    if (nodes.size() < needed) continue;
    Worth& worth = order.emplace_back(Worth{name, nodes.size()});
    for (const NodeProfile& node : nodes) worth.rate += FlopsPerSecond(node, of_cards);
  }
  const auto by_rate = [](const Worth& a, const Worth& b) { return a.rate > b.rate; };
  const auto by_nodes = [](const Worth& a, const Worth& b) { return a.nodes > b.nodes; };
  std::stable_sort(order.begin(), order.end(), by_rate);
  std::stable_sort(order.begin(), order.end(), by_nodes);
  if (order.size() > size_t{kClassesTriedMax}) {
    std::stable_sort(order.begin() + 1, order.end(), by_rate);
    order.resize(kClassesTriedMax);
    std::stable_sort(order.begin(), order.end(), by_nodes);
  }
  std::vector<std::string> names;
  for (const Worth& worth : order) names.push_back(worth.name);
  return names;
}

std::string Quoted(const std::string& numeric_class) {
  return absl::StrCat("'", numeric_class, "'");
}

// "2 of 'a' (n1, n2), 1 of 'b' (n3)".
std::string ClassList(const Classes& classes) {
  return absl::StrJoin(classes, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second.size(), " of ", Quoted(entry.first), " (",
                    absl::StrJoin(entry.second, ", ",
                                  [](std::string* name, const NodeProfile& node) {
                                    absl::StrAppend(name, node.name);
                                  }),
                    ")");
  });
}

constexpr absl::string_view kClassRemedy =
    "nodes of different classes do not compute the same bits; what helps is enough machines of one "
    "kind, with one build, or `pipeline.numeric_class: any`, with which the bits depend on where "
    "each stage runs";

// A run keeps to its class, whatever its file may say of others today.
std::string FixedClassRemedy(const std::string& run) {
  return absl::StrCat(
      "nodes of other classes do not compute the same bits; what helps is enough machines of that "
      "class (a card's has the versions of cuBLAS and cuDNN: install those of then), or a new run "
      "that goes on from the weights: `longhaul checkpoint export ",
      run, " --to DIR`, then `model: {from: DIR}` in the file that it is started with");
}

absl::Status NotEnoughNodes(int stages, size_t nodes, const std::vector<std::string>& excluded) {
  return absl::FailedPreconditionError(
      absl::StrCat("pipeline.stages is ", stages, " but ", nodes,
                   nodes == 1 ? " node is" : " nodes are", " available: use at most ", nodes,
                   ", or start ", stages - nodes, " more; a node holds one stage",
                   excluded.empty() ? "" : "; ", absl::StrJoin(excluded, "; ")));
}

// Every node by class; what cannot be planned with goes to `excluded`.
absl::StatusOr<Classes> ClassesOf(const PlanRequest& request, std::vector<std::string>& excluded) {
  std::map<std::string, NodeProfile> by_name;
  for (const NodeProfile& node : request.nodes) {
    if (!by_name.try_emplace(node.name, node).second) {
      return absl::InvalidArgumentError(absl::StrCat("two nodes have the name '", node.name, "'"));
    }
  }
  if (by_name.empty()) {
    return absl::FailedPreconditionError(
        "no node is available: start workers (`longhauld worker --config FILE`, or `longhaul up` "
        "for local ones) and look at `longhaul node ls`");
  }
  Classes classes;
  for (const auto& [name, node] : by_name) {
    const std::string wrong = WhatIsWrong(node, request.spec.train.precision);
    if (wrong.empty()) {
      classes[node.numeric_class].push_back(node);
    } else {
      excluded.push_back(
          absl::StrCat("Node ", name, " is left out: it reports no usable speed (", wrong, ")"));
    }
  }
  if (classes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no node can be planned with; restart its worker so that it measures again: ",
                     absl::StrJoin(excluded, "; ")));
  }
  return classes;
}

size_t CountOf(const Classes& classes, const std::string& name) {
  const auto found = classes.find(name);
  return found == classes.end() ? 0 : found->second.size();
}

std::vector<NodeProfile> AllOf(const Classes& classes) {
  std::vector<NodeProfile> nodes;
  for (const auto& [name, of_class] : classes) {
    nodes.insert(nodes.end(), of_class.begin(), of_class.end());
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile& a, const NodeProfile& b) { return a.name < b.name; });
  return nodes;
}

}  // namespace

absl::StatusOr<std::vector<EligibleNodes>> SelectNodes(const PlanRequest& request, int stages) {
  std::vector<std::string> excluded;
  LH_ASSIGN_OR_RETURN(const Classes classes, ClassesOf(request, excluded));
  const std::vector<NodeProfile> usable = AllOf(classes);
  if (static_cast<size_t>(stages) > usable.size()) {
    return NotEnoughNodes(stages, usable.size(), excluded);
  }
  const bool fixed = !request.numeric_class.empty();
  const bool any = request.spec.any_numeric_class && !fixed;
  const size_t needed = static_cast<size_t>(std::max(1, stages));
  const std::vector<std::string> tried =
      fixed ? std::vector{request.numeric_class}
            : ClassesTried(classes, needed, request.spec.train.precision);
  std::vector<EligibleNodes> choices;
  if (any) choices.push_back({usable, "", excluded, true});
  for (const std::string& name : tried) {
    if (any && classes.size() == 1) break;
    if (CountOf(classes, name) < needed) continue;
    choices.push_back({classes.at(name), name, excluded});
  }
  if (!choices.empty()) return choices;
  const std::string what =
      fixed
          ? absl::StrCat("the run was begun with numeric class ", Quoted(request.numeric_class),
                         ", which ", CountOf(classes, request.numeric_class), " of ", usable.size(),
                         " available nodes have",
                         stages > 0 ? absl::StrCat(", but pipeline.stages is ", stages) : "")
          : absl::StrCat("pipeline.stages is ", stages, ", but no numeric class has so many nodes");
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": there are ", ClassList(classes), "; ",
                   fixed ? FixedClassRemedy(request.spec.name) : std::string(kClassRemedy)));
}

}  // namespace longhaul::coordinator
