#include "coordinator/plan/schedule_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "coordinator/plan/replicas.h"
#include "schedule/replay.h"

namespace longhaul::coordinator {
namespace {

// The first step fills the pipeline; the second overlaps with it as every later one does.
constexpr int kSteps = 2;

// The straight line through (x0, y0) and (x1, y1), at x.
double Continue(double x0, double y0, double x1, double y1, double x) {
  return y1 + (y1 - y0) / (x1 - x0) * (x - x1);
}

}  // namespace

int SimulatedMicroBatchesMax(int stages) { return std::max(128, 4 * stages); }

schedule::Shape ScheduleModel::ShapeOf(int micro_batches) const {
  schedule::Shape shape = shape_;
  shape.micro_batches = micro_batches;
  for (const std::vector<int>& shares : shares_) {
    // As if each had the speed of its share.
    std::vector<double> seconds;
    for (const int share : shares) seconds.push_back(1.0 / share);
    const std::vector<int> part =
        micro_batches == shape_.micro_batches ? shares : SharesBySpeed(seconds, micro_batches);
    shape.replicas.push_back(static_cast<int>(part.size()));
    shape.owners.push_back(blocks_ ? schedule::BlockOwners(part) : schedule::SpreadOwners(part));
  }
  return shape;
}

absl::Status ScheduleModel::AddSample(const std::string& schedule, int micro_batches) {
  const schedule::Shape shape = ShapeOf(micro_batches);
  LH_ASSIGN_OR_RETURN(std::vector<schedule::Program> programs, schedule::Generate(schedule, shape));
  LH_RETURN_IF_ERROR(schedule::Replay(programs, shape));
  samples_.push_back({micro_batches, std::move(programs)});
  return absl::OkStatus();
}

absl::StatusOr<ScheduleModel> ScheduleModel::Create(const std::string& schedule,
                                                    const schedule::Shape& shape,
                                                    std::vector<std::vector<int>> shares,
                                                    bool blocks) {
  ScheduleModel model(shape);
  model.shares_ = std::move(shares);
  model.blocks_ = blocks;
  const int most = SimulatedMicroBatchesMax(shape.stages);
  if (shape.micro_batches > most) LH_RETURN_IF_ERROR(model.AddSample(schedule, most / 2));
  LH_RETURN_IF_ERROR(model.AddSample(schedule, std::min(most, shape.micro_batches)));
  const Sample& first = model.samples_.front();
  const Sample& last = model.samples_.back();
  for (size_t group = 0; group < last.programs.size(); ++group) {
    const int slots = last.programs[group].slots;
    model.slots_.push_back(model.samples_.size() == 1
                               ? slots
                               : static_cast<int>(std::lround(
                                     Continue(first.micro_batches, first.programs[group].slots,
                                              last.micro_batches, slots, shape.micro_batches))));
  }
  return model;
}

absl::StatusOr<StepPrediction> ScheduleModel::Predict(const schedule::TimelineCosts& costs) const {
  std::vector<StepPrediction> predictions;
  for (const Sample& sample : samples_) {
    LH_ASSIGN_OR_RETURN(const schedule::Timeline timeline,
                        schedule::Simulate(sample.programs, costs, kSteps));
    StepPrediction& prediction = predictions.emplace_back();
    prediction.step_seconds = timeline.step_seconds;
    for (const double seconds : timeline.compute_seconds) {
      prediction.compute_seconds.push_back(seconds / kSteps);
    }
  }
  if (samples_.size() == 1) return predictions.front();
  const auto at_all = [&](double first, double last) {
    return Continue(samples_.front().micro_batches, first, samples_.back().micro_batches, last,
                    shape_.micro_batches);
  };
  StepPrediction all;
  all.step_seconds = at_all(predictions[0].step_seconds, predictions[1].step_seconds);
  for (size_t group = 0; group < slots_.size(); ++group) {
    all.compute_seconds.push_back(
        at_all(predictions[0].compute_seconds[group], predictions[1].compute_seconds[group]));
  }
  return all;
}

}  // namespace longhaul::coordinator
