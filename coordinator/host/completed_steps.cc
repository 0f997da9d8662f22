#include "coordinator/host/completed_steps.h"

#include <algorithm>
#include <utility>

namespace longhaul::coordinator {
namespace {

CompletedStep FromReports(const std::vector<control::StepReport>& stages) {
  const control::StepReport& last = stages.back();
  CompletedStep step;
  step.step = last.step;
  step.epoch = last.epoch;
  step.applied = last.applied;
  step.loss = last.loss;
  step.gradient_norm = last.gradient_norm;
  step.learning_rate = last.learning_rate;
  step.tokens = last.tokens;
  for (const control::StepReport& stage : stages)
    step.seconds = std::max(step.seconds, stage.total_seconds);
  step.has_validation = last.has_validation;
  step.validation_loss = last.validation_loss;
  return step;
}

}  // namespace

void StepCollector::Add(const control::StepReport& report) {
  if (!epoch_.empty() &&
      (epoch_.back().step != report.step || epoch_.back().epoch != report.epoch)) {
    const int64_t step = epoch_.back().step;
    EndEpoch();
    if (step != report.step) EndStep();
  }
  epoch_.push_back(report);
}

void StepCollector::EndEpoch() {
  if (epoch_.empty()) return;
  const control::StepReport& last = epoch_.back();
  if (last.stage == last.stages - 1) {
    partial_ = FromReports(epoch_);
    if (static_cast<int>(epoch_.size()) == last.stages) complete_ = partial_;
  }
  epoch_.clear();
}

void StepCollector::EndStep() {
  std::optional<CompletedStep> step = complete_.has_value() ? complete_ : partial_;
  const bool is_complete = complete_.has_value();
  complete_.reset();
  partial_.reset();
  if (gap_) return;
  if (!step.has_value() || step->step != next_ + static_cast<int64_t>(steps_.size())) {
    gap_ = true;
    return;
  }
  steps_.push_back(*std::move(step));
  if (is_complete) complete_count_ = steps_.size();
}

bool StepCollector::full() const { return gap_ || static_cast<int64_t>(complete_count_) >= limit_; }

std::vector<CompletedStep> StepCollector::Finish() && {
  if (!epoch_.empty()) {
    EndEpoch();
    EndStep();
  }
  steps_.resize(std::min(complete_count_, static_cast<size_t>(std::max<int64_t>(limit_, 0))));
  return std::move(steps_);
}

}  // namespace longhaul::coordinator
