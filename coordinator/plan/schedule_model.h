// What a schedule means for a plan: slots, and the time of a step.
#ifndef LONGHAUL_COORDINATOR_PLAN_SCHEDULE_MODEL_H_
#define LONGHAUL_COORDINATOR_PLAN_SCHEDULE_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace longhaul::coordinator {

// Micro-batches up to which a step is simulated whole. In a longer step the same pattern repeats:
// its slots and seconds are continued linearly from half as many and as many micro-batches.
int SimulatedMicroBatchesMax(int stages);

// In the long run, of one step.
struct StepPrediction {
  double step_seconds = 0;
  std::vector<double> compute_seconds;  // by device group
};

// The programs of one schedule and shape, proven by replay.
class ScheduleModel {
 public:
  // InvalidArgument for an unknown schedule. `shares`: by stage and replica, of the micro-batches,
  // which go to them in blocks or spread; empty: one replica each. `shape` has no owners.
  static absl::StatusOr<ScheduleModel> Create(const std::string& schedule,
                                              const schedule::Shape& shape,
                                              std::vector<std::vector<int>> shares = {},
                                              bool blocks = false);

  // By device group: micro-batches in flight.
  const std::vector<int>& slots() const { return slots_; }
  absl::StatusOr<StepPrediction> Predict(const schedule::TimelineCosts& costs) const;

 private:
  struct Sample {
    int micro_batches = 0;
    std::vector<schedule::Program> programs;
  };
  explicit ScheduleModel(const schedule::Shape& shape) : shape_(shape) {}
  // The shape with so many micro-batches, divided as the shares say.
  schedule::Shape ShapeOf(int micro_batches) const;
  absl::Status AddSample(const std::string& schedule, int micro_batches);

  schedule::Shape shape_;
  std::vector<std::vector<int>> shares_;
  bool blocks_ = false;
  std::vector<Sample> samples_;  // one, or two to continue from
  std::vector<int> slots_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_SCHEDULE_MODEL_H_
