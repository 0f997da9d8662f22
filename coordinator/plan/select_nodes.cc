#include "coordinator/plan/select_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longhaul::coordinator {
namespace {

using Classes = std::map<std::string, std::vector<NodeProfile>>;

// Empty when the profile's numbers can be planned with.
std::string WhatIsWrong(const NodeProfile& node) {
  const auto bad_rate = [](double rate) { return !std::isfinite(rate) || rate <= 0; };
  if (bad_rate(node.flops_per_second)) {
    return absl::StrCat("flops_per_second is ", node.flops_per_second);
  }
  if (bad_rate(node.bytes_per_second)) {
    return absl::StrCat("bytes_per_second is ", node.bytes_per_second);
  }
  if (node.threads < 1) return absl::StrCat("threads is ", node.threads);
  return "";
}

double TotalRate(const std::vector<NodeProfile>& nodes) {
  double rate = 0;
  for (const NodeProfile& node : nodes) rate += node.flops_per_second;
  return rate;
}

// The class with the most nodes, then the most arithmetic, then the first name.
std::string LargestClass(const Classes& classes) {
  auto best = classes.begin();
  for (auto it = classes.begin(); it != classes.end(); ++it) {
    const size_t size = it->second.size(), best_size = best->second.size();
    if (size > best_size ||
        (size == best_size && TotalRate(it->second) > TotalRate(best->second))) {
      best = it;
    }
  }
  return best->first;
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
    "kind, with one build";

absl::Status NotEnoughNodes(int stages, size_t nodes, const std::vector<std::string>& excluded) {
  return absl::FailedPreconditionError(
      absl::StrCat("pipeline.stages is ", stages, " but ", nodes,
                   nodes == 1 ? " node is" : " nodes are", " available: use at most ", nodes,
                   ", or start ", stages - nodes, " more; a node holds one stage",
                   excluded.empty() ? "" : "; ", absl::StrJoin(excluded, "; ")));
}

}  // namespace

absl::StatusOr<EligibleNodes> SelectNodes(const PlanRequest& request, int stages) {
  EligibleNodes eligible;
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
    const std::string wrong = WhatIsWrong(node);
    if (wrong.empty()) {
      classes[node.numeric_class].push_back(node);
    } else {
      eligible.excluded.push_back(
          absl::StrCat("Node ", name, " is left out: it reports no usable speed (", wrong, ")"));
    }
  }
  size_t usable = 0;
  for (const auto& [numeric_class, nodes] : classes) usable += nodes.size();
  if (usable == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no node can be planned with; restart its worker so that it measures again: ",
                     absl::StrJoin(eligible.excluded, "; ")));
  }
  if (static_cast<size_t>(stages) > usable) {
    return NotEnoughNodes(stages, usable, eligible.excluded);
  }

  const bool fixed = !request.numeric_class.empty();
  eligible.numeric_class = fixed ? request.numeric_class : LargestClass(classes);
  const auto chosen = classes.find(eligible.numeric_class);
  const size_t count = chosen == classes.end() ? 0 : chosen->second.size();
  if (count == 0 || static_cast<size_t>(stages) > count) {
    return absl::FailedPreconditionError(absl::StrCat(
        fixed ? "the run was begun with" : "most nodes have", " numeric class ",
        Quoted(eligible.numeric_class), ", which ", count, " of ", usable, " available nodes have",
        stages > 0 ? absl::StrCat(", but pipeline.stages is ", stages) : "", ": there are ",
        ClassList(classes), "; ", kClassRemedy));
  }
  eligible.nodes = chosen->second;
  for (const auto& [numeric_class, nodes] : classes) {
    if (numeric_class == eligible.numeric_class) continue;
    for (const NodeProfile& node : nodes) {
      eligible.excluded.push_back(absl::StrCat(
          "Node ", node.name, " is left out: its numeric class ", Quoted(numeric_class),
          " is not the run's ", Quoted(eligible.numeric_class)));
    }
  }
  return eligible;
}

}  // namespace longhaul::coordinator
