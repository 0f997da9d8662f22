// Measures a scope.
#ifndef LONGHAUL_WORKER_EXEC_STOPWATCH_H_
#define LONGHAUL_WORKER_EXEC_STOPWATCH_H_

#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::worker {

// Adds the seconds until its end to `seconds`.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), start_(clock.Now()) {}
  ~Stopwatch() { seconds_ += absl::ToDoubleSeconds(clock_.Now() - start_); }

 private:
  const Clock& clock_;
  double& seconds_;
  const absl::Time start_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_STOPWATCH_H_
