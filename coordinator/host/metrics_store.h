// The record of every optimizer step of every run.
#ifndef LONGHAUL_COORDINATOR_HOST_METRICS_STORE_H_
#define LONGHAUL_COORDINATOR_HOST_METRICS_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/events.h"

namespace longhaul::coordinator {

// A step that every stage has completed. Loss figures are the last stage's.
struct CompletedStep {
  int64_t step = 0;
  Epoch epoch;
  bool applied = true;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;
  double seconds = 0;  // of the slowest stage
  bool has_validation = false;
  double validation_loss = 0;
};

// What a summary of a run that is at some step shows beside its record. Steps behind that one are
// of what the run went back from, and count for `newest` alone.
struct RunFigures {
  int64_t step = 0;              // newest completed up to there; 0: none
  double loss = 0;               // of `step`
  Epoch step_epoch;              // that completed `step`
  double tokens_per_second = 0;  // over the newest completed steps, at most 20
  double step_seconds = 0;       // median of those of them that are of `step_epoch`
  bool has_validation = false;
  double validation_loss = 0;  // newest up to there
  int64_t skipped_steps = 0;   // not applied, up to there
  int64_t newest_step = 0;     // completed in any epoch; 0: none
  Epoch newest_epoch;          // that completed it last
};

// Thread-safe.
class MetricsStore {
 public:
  virtual ~MetricsStore() = default;

  // Durable on return, all or none. Idempotent: a report replaces one of the same (run, step,
  // epoch, stage).
  virtual absl::Status Record(const std::vector<control::StepReport>& reports) = 0;

  // Completed steps after `after`, ascending without gap or repeat from after+1, at most `limit`.
  // A step is complete when all stages of one epoch have reported it, or a later step is complete
  // and the last stage has reported this one. Steps trained twice (after a loss of work) appear
  // once, with the newest epoch's figures.
  virtual absl::StatusOr<std::vector<CompletedStep>> CompletedSteps(const std::string& run,
                                                                    int64_t after, int limit) = 0;

  // Each stage's newest report in `epoch`, which begins after step `after`, ascending by stage;
  // stages without one are absent. Takes no longer where many steps came before the epoch.
  virtual absl::StatusOr<std::vector<control::StepReport>> NewestReports(const std::string& run,
                                                                         const Epoch& epoch,
                                                                         int64_t after) = 0;

  // Of a run that is at `step`. Takes no longer for a run of many steps.
  virtual absl::StatusOr<RunFigures> Figures(const std::string& run, int64_t step) = 0;
};

// In an SQLite file, created if absent. The same errors as OpenSqliteJournal.
absl::StatusOr<std::unique_ptr<MetricsStore>> OpenSqliteMetrics(const std::string& path);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_METRICS_STORE_H_
