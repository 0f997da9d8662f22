#include "coordinator/host/assignment.h"

namespace longhaul::coordinator {

control::Assignment FillAssignment(const State& state, const Assign& action) {
  const RunRecord& run = state.runs.at(action.run);
  control::Assignment message;
  message.run = action.run;
  message.epoch = action.epoch;
  message.token = run.token;
  message.spec = run.spec;
  message.stage = action.stage;
  for (const StagePlacement& stage : run.plan->stages) {
    message.stages.push_back({.node = stage.node,
                              .data_address = state.nodes.at(stage.node).facts.data_address,
                              .range = stage.range,
                              .recompute = stage.recompute,
                              .replica = stage.replica,
                              .micro_batches = stage.micro_batches});
  }
  message.link_codecs = run.plan->link_codecs;
  message.numeric_class = NumericClassOf(run);
  message.start_step = run.start_step;
  message.checkpoint = run.checkpoint;
  return message;
}

}  // namespace longhaul::coordinator
