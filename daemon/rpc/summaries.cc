#include "daemon/rpc/summaries.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "coordinator/plan/device.h"
#include "coordinator/plan/planner.h"
#include "daemon/rpc/convert_device.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/wire_check.h"
#include "model/family.h"
#include "run/run_spec.h"

namespace longhaul::daemon {

bool IsOver(coordinator::RunState state) {
  return state != coordinator::RunState::kPending && state != coordinator::RunState::kRunning;
}

namespace {

using coordinator::NodeRecord;
using coordinator::RunRecord;
using coordinator::RunState;
using coordinator::State;

void SetStage(const State& state, const coordinator::StagePlacement& placement,
              const model::Graph& graph, v1::StageSummary* out) {
  out->set_node(placement.node);
  const auto node = state.nodes.find(placement.node);
  if (node != state.nodes.end()) out->set_site(node->second.facts.profile.site);
  out->set_first_layer(-1);
  out->set_last_layer(-1);
  const int ops = static_cast<int>(graph.ops.size());
  if (placement.range.begin < 0 || placement.range.end > ops ||
      placement.range.begin >= placement.range.end) {
    return;
  }
  const model::Op& first = graph.ops[static_cast<size_t>(placement.range.begin)];
  const model::Op& last = graph.ops[static_cast<size_t>(placement.range.end - 1)];
  out->set_first_operator(first.name);
  out->set_last_operator(last.name);
  if (first.layer >= graph.layers) return;  // the head only
  out->set_first_layer(first.layer);
  out->set_last_layer(std::min(last.layer, graph.layers - 1));
}

absl::Status AddStages(const State& state, const RunRecord& run, coordinator::MetricsStore& metrics,
                       v1::RunSummary& summary) {
  if (!run.plan) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(run.spec.model));
  LH_ASSIGN_OR_RETURN(const std::vector<control::StepReport> reports,
                      metrics.NewestReports(run.spec.name, run.epoch, run.start_step));
  std::map<int, const control::StepReport*> newest;
  for (const control::StepReport& report : reports) newest[report.stage] = &report;
  for (size_t s = 0; s < run.plan->stages.size(); ++s) {
    v1::StageSummary* out = summary.add_stages();
    out->set_stage(static_cast<uint32_t>(run.plan->StageOf(static_cast<int>(s))));
    out->set_replica(static_cast<uint32_t>(run.plan->stages[s].replica));
    out->set_replicated(run.plan->IsReplicated(static_cast<int>(s)));
    SetStage(state, run.plan->stages[s], graph, out);
    if (s < run.progress.size()) out->set_step(static_cast<uint64_t>(run.progress[s].step));
    const auto report = newest.find(static_cast<int>(s));
    if (report == newest.end()) continue;
    out->set_total_seconds(report->second->total_seconds);
    out->set_compute_seconds(report->second->compute_seconds);
    out->set_wait_seconds(report->second->wait_seconds);
  }
  return absl::OkStatus();
}

std::string ReasonOf(const State& state, const RunRecord& run, const absl::Status& health) {
  std::string reason = run.reason;
  const auto add = [&reason](absl::string_view text) {
    if (text.empty()) return;
    absl::StrAppend(&reason, reason.empty() ? "" : "; ", text);
  };
  // Most reasons of such a run name the problem already.
  if (!absl::StrContains(run.reason, run.checkpoint_problem)) add(run.checkpoint_problem);
  add(coordinator::DescribeWait(state, run));
  if (!health.ok() && !IsOver(run.state)) add(health.message());
  return reason;
}

}  // namespace

absl::StatusOr<v1::RunSummary> SummariseRun(const State& state, const RunRecord& run,
                                            coordinator::CoordinatorHost& host, bool whole) {
  coordinator::MetricsStore& metrics = host.metrics();
  const int64_t step = coordinator::EpochStep(run);
  LH_ASSIGN_OR_RETURN(const coordinator::RunFigures figures, metrics.Figures(run.spec.name, step));
  v1::RunSummary summary;
  summary.set_run(run.spec.name);
  summary.set_state(coordinator::RunStateName(run.state));
  summary.set_phase(coordinator::RunPhaseName(run.phase));
  summary.set_reason(WireText(ReasonOf(state, run, host.health()), kTextBytesMax));
  summary.set_epoch(ToString(run.epoch));
  summary.set_step(static_cast<uint64_t>(step));
  summary.set_steps(static_cast<uint64_t>(run.spec.train.steps));
  if (figures.newest_step > step && figures.newest_epoch != run.epoch) {
    summary.set_again_up_to(static_cast<uint64_t>(figures.newest_step));
  }
  summary.set_loss(figures.loss);
  summary.set_has_validation(figures.has_validation);
  summary.set_validation_loss(figures.validation_loss);
  summary.set_tokens_per_second(figures.tokens_per_second);
  summary.set_skipped_steps(static_cast<uint64_t>(figures.skipped_steps));
  summary.set_has_checkpoint(run.checkpoint.has_value());
  if (run.checkpoint) summary.set_checkpoint_step(static_cast<uint64_t>(run.checkpoint->step));
  if (run.plan) summary.set_stage_count(static_cast<uint32_t>(run.plan->StageCount()));
  if (run.plan) summary.set_predicted_step_seconds(run.plan->step_seconds);
  // The prediction is for the plan in force.
  if (figures.step_epoch == run.epoch) summary.set_step_seconds(figures.step_seconds);
  if (!whole) return summary;
  LH_RETURN_IF_ERROR(AddStages(state, run, metrics, summary));
  if (run.plan) summary.set_plan_json(coordinator::PlanToJson(*run.plan));
  summary.set_spec_json(run::ToJson(run.spec));
  return summary;
}

std::vector<checkpoint::Manifest> CheckpointsOf(const RunRecord& run) {
  std::vector<checkpoint::Manifest> all;
  for (const coordinator::OtherCheckpoint& other : run.other_checkpoints) {
    all.push_back(other.manifest);
  }
  if (run.checkpoint.has_value()) all.push_back(*run.checkpoint);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return all;
}

std::string CheckpointNote(const RunRecord& run, const checkpoint::Manifest& manifest) {
  for (const coordinator::OtherCheckpoint& other : run.other_checkpoints) {
    if (other.manifest == manifest && !other.damage.empty()) {
      return absl::StrCat("damaged: ", other.damage);
    }
  }
  if (run.checkpoint.has_value() && manifest.step <= run.checkpoint->step) return "";
  return "left behind: the run went back to an earlier step";
}

v1::NodeSummary SummariseNode(const State& state, const NodeRecord& node, absl::Time now) {
  const coordinator::NodeProfile& profile = node.facts.profile;
  v1::NodeSummary summary;
  summary.set_node(profile.name);
  summary.set_site(profile.site);
  summary.set_state(coordinator::NodeStateName(node.state));
  summary.set_reason(WireText(node.reason, kTextBytesMax));
  summary.set_version(node.facts.version);
  summary.set_data_address(node.facts.data_address);
  summary.set_numeric_class(profile.numeric_class);
  summary.set_threads(static_cast<uint32_t>(profile.threads));
  summary.set_memory_bytes(profile.memory_bytes);
  summary.set_process_bytes(profile.process_bytes);
  summary.set_flops_per_second(profile.flops_per_second);
  summary.set_bytes_per_second(profile.bytes_per_second);
  summary.set_incarnation(node.facts.incarnation);
  if (node.session != 0) {
    summary.set_lease_seconds_left(std::max(0.0, absl::ToDoubleSeconds(node.lease_until - now)));
  }
  summary.set_host(profile.host);
  summary.set_host_cores(static_cast<uint32_t>(profile.host_cores));
  summary.set_trusted_network(profile.trusted_network);
  summary.set_device_kind(coordinator::NameOf(profile.device_kind));
  summary.set_device_name(profile.device_name);
  summary.set_bfloat16_flops_per_second(profile.bfloat16_flops_per_second);
  if (node.facts.card) ToWire(*node.facts.card, summary.mutable_card());
  if (node.card) ToWire(*node.card, summary.mutable_card_readings());
  for (const auto& [name, run] : state.runs) {
    if (run.state != RunState::kRunning || !run.plan) continue;
    for (size_t s = 0; s < run.plan->stages.size(); ++s) {
      if (run.plan->stages[s].node != profile.name) continue;
      summary.set_run(name);
      summary.set_stage(static_cast<uint32_t>(run.plan->StageOf(static_cast<int>(s))));
      summary.set_replica(static_cast<uint32_t>(run.plan->stages[s].replica));
      summary.set_replicated(run.plan->IsReplicated(static_cast<int>(s)));
    }
  }
  return summary;
}

v1::LinkSummary ToWire(const coordinator::LinkProfile& link) {
  v1::LinkSummary wire;
  wire.set_from(link.from_site);
  wire.set_to(link.to_site);
  wire.set_latency_seconds(link.latency_seconds);
  wire.set_bytes_per_second(link.bytes_per_second);
  return wire;
}

v1::WatchedStep ToWire(const coordinator::CompletedStep& step) {
  v1::WatchedStep wire;
  wire.set_step(static_cast<uint64_t>(step.step));
  wire.set_loss(step.loss);
  wire.set_tokens(static_cast<uint64_t>(step.tokens));
  if (step.seconds > 0) {
    wire.set_tokens_per_second(static_cast<double>(step.tokens) / step.seconds);
  }
  wire.set_gradient_norm(step.gradient_norm);
  wire.set_learning_rate(step.learning_rate);
  wire.set_applied(step.applied);
  wire.set_has_validation(step.has_validation);
  wire.set_validation_loss(step.validation_loss);
  return wire;
}

}  // namespace longhaul::daemon
