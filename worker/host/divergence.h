// When a run cannot go on, because its numbers are no numbers any more, and where they were lost.
#ifndef LONGHAUL_WORKER_HOST_DIVERGENCE_H_
#define LONGHAUL_WORKER_HOST_DIVERGENCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compute/stage/stage.h"
#include "model/graph.h"
#include "worker/exec/stage_executor.h"

namespace longhaul::worker {

struct Divergence {
  // Which of several stages' accounts names the cause: the lowest. Below 0: a parameter is not
  // finite, and no other account is waited for.
  int64_t order = 0;
  std::string text;  // for people, without the stage
};

// Watches one stage of a run. Every stage of a run finds the same after the same step, except for a
// parameter, which only who holds it sees.
//
// A step whose gradient is not finite is skipped, and may be one bad batch. The steps after it are
// looked at operator by operator, as long as they are skipped too; after kSkippedStepsMax in a row,
// or where all steps of a run were skipped, it has diverged. A skipped step without targets is no
// sign of anything. One thread.
class DivergenceWatch {
 public:
  // All outlive the watch. The run's steps from `start_step` + 1 to `steps` follow.
  DivergenceWatch(const model::Graph& graph, compute::Stage<float>& stage, int64_t start_step,
                  int64_t steps)
      : graph_(graph), stage_(stage), start_step_(start_step), steps_(steps) {}
  ~DivergenceWatch() { stage_.LookForNotFinite(nullptr); }

  void BeforeStep();
  absl::StatusOr<std::optional<Divergence>> AfterStep(const StepResult& result);

 private:
  absl::StatusOr<std::optional<Divergence>> FindBadParameter(int64_t step);
  Divergence Describe(int64_t step) const;

  const model::Graph& graph_;
  compute::Stage<float>& stage_;
  const int64_t start_step_, steps_;
  int64_t skipped_ = 0;     // in a row, not finite
  bool applied_ = false;    // some step was
  int64_t first_skip_ = 0;  // of the row
  compute::NotFinite found_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_DIVERGENCE_H_
