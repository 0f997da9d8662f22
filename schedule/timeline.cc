#include "schedule/timeline.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/groups.h"
#include "schedule/instruction_kind.h"
#include "schedule/simulation.h"

namespace longhaul::schedule {
namespace {

absl::Status CheckCost(absl::string_view name, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("timeline cost ", name, " is ", seconds,
                                                 "; it must be finite and not negative"));
}

absl::Status CheckCosts(absl::string_view name, const std::vector<double>& seconds, size_t count,
                        bool may_be_empty) {
  if (seconds.size() != count && !(may_be_empty && seconds.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("timeline cost ", name, " has ", seconds.size(),
                                                   " entries, ", count, " are needed"));
  }
  for (const double value : seconds) LH_RETURN_IF_ERROR(CheckCost(name, value));
  return absl::OkStatus();
}

absl::Status CheckHosts(const TimelineCosts& costs, size_t groups) {
  const size_t hosts = costs.host_cores.size();
  LH_RETURN_IF_ERROR(CheckCosts("host_cores", costs.host_cores, hosts, false));
  LH_RETURN_IF_ERROR(CheckCosts("threads", costs.threads, costs.host.size(), false));
  if (!costs.host.empty() && costs.host.size() != groups) {
    return absl::InvalidArgumentError(absl::StrCat("timeline cost host has ", costs.host.size(),
                                                   " entries, ", groups, " are needed"));
  }
  for (const int host : costs.host) {
    if (host >= 0 && static_cast<size_t>(host) < hosts) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("timeline cost host is ", host, "; host_cores has ", hosts, " entries"));
  }
  return absl::OkStatus();
}

absl::Status CheckAllCosts(const TimelineCosts& costs, size_t stages, size_t groups) {
  const size_t links = stages - 1;
  LH_RETURN_IF_ERROR(CheckCosts("forward_seconds", costs.forward_seconds, groups, false));
  LH_RETURN_IF_ERROR(CheckCosts("backward_seconds", costs.backward_seconds, groups, false));
  LH_RETURN_IF_ERROR(CheckCosts("optimizer_seconds", costs.optimizer_seconds, groups, true));
  LH_RETURN_IF_ERROR(CheckCosts("activation_latency", costs.activation_latency, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("activation_transfer", costs.activation_transfer, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_latency", costs.gradient_latency, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_transfer", costs.gradient_transfer, links, false));
  LH_RETURN_IF_ERROR(CheckCosts("activation_encode", costs.activation_encode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("activation_decode", costs.activation_decode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_encode", costs.gradient_encode, links, true));
  LH_RETURN_IF_ERROR(CheckCosts("gradient_decode", costs.gradient_decode, links, true));
  LH_RETURN_IF_ERROR(CheckHosts(costs, groups));
  LH_RETURN_IF_ERROR(CheckCosts("reduce_seconds", costs.reduce_seconds, stages, true));
  LH_RETURN_IF_ERROR(
      CheckCosts("tied_broadcast_seconds", costs.tied_broadcast_seconds, stages, true));
  LH_RETURN_IF_ERROR(CheckCost("tied_gradient_latency", costs.tied_gradient_latency));
  LH_RETURN_IF_ERROR(CheckCost("tied_gradient_transfer", costs.tied_gradient_transfer));
  LH_RETURN_IF_ERROR(CheckCost("tied_sum_latency", costs.tied_sum_latency));
  return CheckCost("tied_sum_transfer", costs.tied_sum_transfer);
}

absl::Status CheckPrograms(const std::vector<Program>& programs, const Shape& shape) {
  for (const Program& program : programs) {
    for (const Instruction& instruction : program.instructions) {
      const KindInfo& info = Info(instruction.kind);
      const bool moves = info.role == Role::kSend || info.role == Role::kReceive;
      const int stage = program.stage;
      const int peer = moves ? PeerStage(info.kind, stage, shape.stages) : stage;
      const int m = instruction.micro_batch;
      const bool known = !info.per_micro_batch || (m >= 0 && m < shape.micro_batches);
      if (instruction.stage == stage && known && peer >= 0 && peer < shape.stages &&
          !(moves && peer == stage)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("timeline: the program of stage ", stage, " of ", shape.stages, " has ",
                       ToText(instruction), " of stage ", instruction.stage));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Timeline> Simulate(const std::vector<Program>& programs, const TimelineCosts& costs,
                                  int steps) {
  if (steps < 1) return absl::InvalidArgumentError("a timeline needs at least one step");
  if (programs.empty()) return absl::InvalidArgumentError("a timeline needs at least one program");
  LH_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(programs));
  LH_RETURN_IF_ERROR(CheckPrograms(programs, shape));
  LH_RETURN_IF_ERROR(CheckAllCosts(costs, shape.stages, programs.size()));
  return Simulation(programs, shape, costs, steps).Run();
}

}  // namespace longhaul::schedule
