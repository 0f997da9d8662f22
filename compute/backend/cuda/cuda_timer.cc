#include "compute/backend/cuda/cuda_timer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {

CudaTimer::~CudaTimer() {
  if (begin_ != nullptr) events_.GiveBack(begin_);
  for (const Pair& pair : pairs_) {
    events_.GiveBack(pair.begin);
    events_.GiveBack(pair.end);
  }
}

absl::Status CudaTimer::Begin() {
  LH_CHECK(begin_ == nullptr, "a timer began twice");
  LH_RETURN_IF_ERROR(Collect());
  LH_ASSIGN_OR_RETURN(begin_, Record());
  return absl::OkStatus();
}

absl::Status CudaTimer::End() {
  LH_CHECK(begin_ != nullptr, "a timer ended that had not begun");
  const cudaEvent_t begin = std::exchange(begin_, nullptr);
  const absl::StatusOr<cudaEvent_t> end = Record();
  if (!end.ok()) {
    events_.GiveBack(begin);
    return end.status();
  }
  pairs_.push_back({begin, *end});
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> CudaTimer::Take() {
  LH_RETURN_IF_ERROR(Collect());
  return std::exchange(sum_, absl::ZeroDuration());
}

absl::StatusOr<cudaEvent_t> CudaTimer::Record() {
  LH_ASSIGN_OR_RETURN(const cudaEvent_t event, events_.Take());
  device_.Use();
  const absl::Status status =
      CudaStatus(cudaEventRecord(event, stream_), absl::StrCat(device_.name(), ": a timer"));
  if (status.ok()) return event;
  events_.GiveBack(event);
  return status;
}

absl::Status CudaTimer::Collect() {
  device_.Use();
  while (!pairs_.empty()) {
    const Pair pair = pairs_.front();
    const cudaError_t ran = cudaEventQuery(pair.end);
    if (ran == cudaErrorNotReady) return absl::OkStatus();
    float milliseconds = 0;
    LH_RETURN_IF_ERROR(CudaStatus(ran, device_.name()));
    LH_RETURN_IF_ERROR(
        CudaStatus(cudaEventElapsedTime(&milliseconds, pair.begin, pair.end), device_.name()));
    sum_ += absl::Milliseconds(double{milliseconds});
    pairs_.pop_front();
    events_.GiveBack(pair.begin);
    events_.GiveBack(pair.end);
  }
  return absl::OkStatus();
}

}  // namespace longhaul::compute
