// Private to the metrics store: which steps are complete, from stages' reports.
#ifndef LONGHAUL_COORDINATOR_HOST_COMPLETED_STEPS_H_
#define LONGHAUL_COORDINATOR_HOST_COMPLETED_STEPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/core/events.h"
#include "coordinator/host/metrics_store.h"

namespace longhaul::coordinator {

// Fed with one run's reports in order of (step, epoch, stage); the rules are MetricsStore's.
class StepCollector {
 public:
  StepCollector(int64_t after, int64_t limit) : next_(after + 1), limit_(limit) {}

  void Add(const control::StepReport& report);
  // More reports change nothing.
  bool full() const;
  std::vector<CompletedStep> Finish() &&;

 private:
  void EndEpoch();
  void EndStep();

  const int64_t next_;  // the first step wanted
  const int64_t limit_;
  bool gap_ = false;
  // Reports of the epoch and step at hand.
  std::vector<control::StepReport> epoch_;
  // Figures of the step at hand: of the newest epoch that all stages have reported, and of the
  // newest that the last stage has.
  std::optional<CompletedStep> complete_, partial_;
  std::vector<CompletedStep> steps_;
  size_t complete_count_ = 0;  // of steps_; behind them come partial ones
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_COMPLETED_STEPS_H_
