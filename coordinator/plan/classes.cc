#include "coordinator/plan/classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "coordinator/plan/format.h"

namespace longhaul::coordinator {
namespace {

std::string Quoted(const std::string& numeric_class) {
  return absl::StrCat("'", numeric_class, "'");
}

std::string NodeWords(const std::vector<std::string>& names) {
  return absl::StrCat(names.size() == 1 ? "Node " : "Nodes ", JoinWords(names));
}

// The names of the request's nodes of each class, but for those that cannot be planned with.
std::map<std::string, std::vector<std::string>> NamesByClass(const PlanRequest& request) {
  std::map<std::string, std::vector<std::string>> names;
  for (const NodeProfile& node : request.nodes) names[node.numeric_class].push_back(node.name);
  for (auto& [numeric_class, of_class] : names) std::sort(of_class.begin(), of_class.end());
  return names;
}

std::vector<std::string> ClassesOf(const PlanRequest& request, const Plan& plan) {
  std::map<std::string, std::string> class_of;
  for (const NodeProfile& node : request.nodes) class_of[node.name] = node.numeric_class;
  std::set<std::string> classes;
  for (const StagePlacement& stage : plan.stages) classes.insert(class_of.at(stage.node));
  return {classes.begin(), classes.end()};
}

// What the best plan of another choice would take; empty without one.
std::string Beside(const ClassPlan* other, const Plan& chosen) {
  if (other == nullptr) return "";
  const bool all = other->eligible.all_classes;
  if (!other->plan.ok()) {
    return absl::StrCat("; ", all ? "nodes of all classes" : "they alone", " would not do (",
                        other->plan.status().message(), ")");
  }
  return absl::StrCat("; with ", all ? "nodes of all classes" : "them alone", " a step would take ",
                      FormatComparison(other->plan->step_seconds, chosen.step_seconds));
}

// Null: there is none.
const ClassPlan* ChoiceOf(const std::vector<ClassPlan>& choices, const std::string& class_name) {
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const ClassPlan& choice) {
    return !choice.eligible.all_classes && choice.eligible.numeric_class == class_name;
  });
  return found == choices.end() ? nullptr : &*found;
}

// The sentences on nodes whose class the chosen one leaves out.
std::vector<std::string> LeftOut(const PlanRequest& request, const std::vector<ClassPlan>& choices,
                                 const ClassPlan& chosen) {
  const std::string& chosen_class = chosen.eligible.numeric_class;
  const ClassPlan* const all = choices.front().eligible.all_classes ? &choices.front() : nullptr;
  const bool fixed = !request.numeric_class.empty();
  std::vector<std::string> sentences;
  for (const auto& [name, nodes] : NamesByClass(request)) {
    if (name == chosen_class) continue;
    const std::string beside = Beside(all != nullptr ? all : ChoiceOf(choices, name), *chosen.plan);
    sentences.push_back(absl::StrCat(
        NodeWords(nodes), nodes.size() == 1 ? " is" : " are", " left out: numeric class ",
        Quoted(name), " is not the run's ", Quoted(chosen_class), beside,
        all != nullptr || fixed ? "."
                                : ". `pipeline.numeric_class: any` would let all take part."));
  }
  return sentences;
}

// Of a plan with several classes.
std::string WhatMixingMeans(const Plan& plan) {
  std::vector<std::string> classes;
  for (const std::string& numeric_class : plan.numeric_classes) {
    classes.push_back(Quoted(numeric_class));
  }
  return absl::StrCat("The bits depend on where each stage runs: nodes of ", classes.size(),
                      " numeric classes take part (", JoinWords(classes),
                      "), as `pipeline.numeric_class: any` allows.");
}

bool WantsReplicas(const run::RunSpec& spec) {
  return std::any_of(spec.replicas.begin(), spec.replicas.end(),
                     [](int64_t wanted) { return wanted > 1; });
}

// Replicas of a stage are of one class in any case, so that other classes do not help them.
absl::Status NoneWillDo(const run::RunSpec& spec, const std::vector<ClassPlan>& choices) {
  const ClassPlan& first = choices.front();
  if (choices.size() == 1 || first.eligible.all_classes) return first.plan.status();
  const char* const remedy =
      WantsReplicas(spec) ? "" : ", but with `pipeline.numeric_class: any` all could take part";
  return Annotate(first.plan.status(),
                  absl::StrCat("with nodes of numeric class ", Quoted(first.eligible.numeric_class),
                               " (others do not do either", remedy, ")"));
}

// A plan must be better by this part to replace one of an earlier choice; one that mixes classes,
// to replace one that does not.
constexpr double kBetter = 1 - 1e-6;
constexpr double kMixingPays = 0.99;

// Null: none of them did.
const ClassPlan* Fastest(absl::Span<const ClassPlan> choices) {
  const ClassPlan* best = nullptr;
  for (const ClassPlan& choice : choices) {
    if (!choice.plan.ok()) continue;
    if (best == nullptr || choice.plan->step_seconds < kBetter * best->plan->step_seconds) {
      best = &choice;
    }
  }
  return best;
}

// The choice to take; null: none did.
const ClassPlan* Choose(const PlanRequest& request, absl::Span<const ClassPlan> choices) {
  const ClassPlan* const best = Fastest(choices);
  if (best == nullptr || ClassesOf(request, *best->plan).size() == 1) return best;
  const ClassPlan* const pure = Fastest(choices.subspan(1));
  const bool pays =
      pure == nullptr || best->plan->step_seconds < kMixingPays * pure->plan->step_seconds;
  return pays ? best : pure;
}

}  // namespace

absl::StatusOr<Plan> FastestClass(const PlanRequest& request,
                                  const std::vector<ClassPlan>& choices) {
  LH_CHECK(!choices.empty());
  for (const ClassPlan& choice : choices) {
    const absl::Status& status = choice.plan.status();
    if (!status.ok() && !absl::IsFailedPrecondition(status)) return status;
  }
  const ClassPlan* const best = Choose(request, choices);
  if (best == nullptr) return NoneWillDo(request.spec, choices);
  Plan plan = *best->plan;
  plan.numeric_classes = ClassesOf(request, plan);
  if (plan.numeric_classes.size() > 1) {
    plan.reasons.insert(plan.reasons.begin(), WhatMixingMeans(plan));
  }
  if (best->eligible.all_classes) return plan;
  for (std::string& sentence : LeftOut(request, choices, *best)) {
    plan.reasons.push_back(std::move(sentence));
  }
  return plan;
}

}  // namespace longhaul::coordinator
