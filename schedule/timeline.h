// When everything of a step happens, from the programs that execution runs and what each piece
// costs: the planner's prediction, and the bubble of a schedule.
#ifndef LONGHAUL_SCHEDULE_TIMELINE_H_
#define LONGHAUL_SCHEDULE_TIMELINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// Seconds, finite and not negative. A send occupies its stage for `encode`; then the frame occupies
// the path from the sending to the receiving stage for `transfer`, after the frames sent before it
// on the same path; `latency` later it has arrived; the receive occupies its stage for `decode`.
// The two directions between two stages are two paths. Norms take the gradients' latency, verdicts
// the activations', and no transfer time.
struct TimelineCosts {
  // By stage.
  std::vector<double> forward_seconds, backward_seconds;  // of one micro-batch
  std::vector<double> optimizer_seconds;                  // empty: 0
  // By link: element s is between stages s and s + 1; activations go down, gradients up.
  std::vector<double> activation_latency, activation_transfer;
  std::vector<double> gradient_latency, gradient_transfer;
  // By link; empty: 0. Of one micro-batch, on the stage's own thread.
  std::vector<double> activation_encode, activation_decode;
  std::vector<double> gradient_encode, gradient_decode;
  // Stages of one host share its cores: while those that work (compute, encode, decode) have more
  // threads together than it has cores, all of them slow in proportion. All empty: none share.
  std::vector<int> host;           // by stage: index into host_cores
  std::vector<double> threads;     // by stage
  std::vector<double> host_cores;  // by host; 0: as many as its stages have threads
  // Between the last stage and the first. With two stages their paths are the link's.
  double tied_gradient_latency = 0, tied_gradient_transfer = 0;
  double tied_sum_latency = 0, tied_sum_transfer = 0;
};

// From when the stage came to the instruction to when it went on; a receive includes its wait.
struct TimedInstruction {
  Instruction instruction;
  int step = 0;  // 0-based, of the timeline
  double start = 0;
  double end = 0;
  bool operator==(const TimedInstruction&) const = default;
};

struct Timeline {
  std::vector<std::vector<TimedInstruction>> stages;  // in the order of execution
  std::vector<double> compute_seconds;  // by stage: in Forward, Backward and OptimizerStep
  std::vector<double> wait_seconds;     // by stage: in receives before the frame had arrived
  std::vector<double> step_ends;        // by step: when every stage has finished it
  // The time of the last step that does not overlap with the step before: with two steps or more,
  // what a step costs in a long run.
  double step_seconds = 0;
};

// Executes `steps` steps one after another, each stage going on by itself. InvalidArgument: a cost
// is missing, negative or not finite. FailedPrecondition: the programs wait for each other for ever
// (they should have passed Replay). Window limits never delay programs that passed it, and are not
// modelled.
absl::StatusOr<Timeline> Simulate(const std::vector<Program>& programs, const TimelineCosts& costs,
                                  int steps = 1);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_TIMELINE_H_
