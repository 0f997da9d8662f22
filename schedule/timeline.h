// When everything of a step happens, from the programs that execution runs and what each piece
// costs: the planner's prediction, and the bubble of a schedule.
#ifndef LONGHAUL_SCHEDULE_TIMELINE_H_
#define LONGHAUL_SCHEDULE_TIMELINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// Seconds, finite and not negative. A send occupies its group for `encode`; then the frame occupies
// the path from the sending to the receiving stage for `transfer`, after the frames sent before it
// on the same path; `latency` later it has arrived; the receive occupies its group for `decode`.
// The two directions between two stages are two paths; replicas of a stage are in one site and
// share them. Norms take the gradients' latency, verdicts the activations', and no transfer time.
struct TimelineCosts {
  // By device group.
  std::vector<double> forward_seconds, backward_seconds;  // of one micro-batch
  std::vector<double> optimizer_seconds;                  // empty: 0
  // By link: element s is between stages s and s + 1; activations go down, gradients up.
  std::vector<double> activation_latency, activation_transfer;
  std::vector<double> gradient_latency, gradient_transfer;
  // By link; empty: 0. Of one micro-batch, on the group's own thread.
  std::vector<double> activation_encode, activation_decode;
  std::vector<double> gradient_encode, gradient_decode;
  // Groups of one host share its cores: while those that work (compute, encode, decode) have more
  // threads together than it has cores, all of them slow in proportion. All empty: none share.
  std::vector<int> host;           // by group: index into host_cores
  std::vector<double> threads;     // by group
  std::vector<double> host_cores;  // by host; 0: as many as its groups have threads
  // Between the last stage and the first. With two stages their paths are the link's.
  double tied_gradient_latency = 0, tied_gradient_transfer = 0;
  double tied_sum_latency = 0, tied_sum_transfer = 0;
  // By stage; empty: 0. Of summing the gradients of its replicas, and of giving the tied sum to
  // them, from when the last one has come to it.
  std::vector<double> reduce_seconds, tied_broadcast_seconds;
};

// From when the group came to the instruction to when it went on; a receive or a collective
// includes its wait.
struct TimedInstruction {
  Instruction instruction;
  int step = 0;  // 0-based, of the timeline
  double start = 0;
  double end = 0;
  bool operator==(const TimedInstruction&) const = default;
};

struct Timeline {
  std::vector<std::vector<TimedInstruction>> groups;  // in the order of execution
  std::vector<double> compute_seconds;  // by group: in Forward, Backward and OptimizerStep
  std::vector<double> wait_seconds;     // by group: for frames to arrive, and in collectives
  std::vector<double> step_ends;        // by step: when every group has finished it
  // The time of the last step that does not overlap with the step before: with two steps or more,
  // what a step costs in a long run.
  double step_seconds = 0;
};

// Executes `steps` steps one after another, each group going on by itself. InvalidArgument: a cost
// is missing, negative or not finite, or the programs are not those of one shape.
// FailedPrecondition: the programs wait for each other for ever (they should have passed Replay).
// Window limits never delay programs that passed it, and are not modelled.
absl::StatusOr<Timeline> Simulate(const std::vector<Program>& programs, const TimelineCosts& costs,
                                  int steps = 1);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_TIMELINE_H_
