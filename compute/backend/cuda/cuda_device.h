// A card as the parts of its backend share it: which it is, and waits for it that end.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_DEVICE_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "compute/backend/streams.h"

namespace longhaul::compute {

// Thread-safe.
class CudaDevice {
 public:
  CudaDevice(int index, Clock& clock, absl::Duration wait_max)
      : index_(index), clock_(clock), wait_max_(wait_max) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int index() const { return index_; }
  std::string name() const;  // "CUDA device 0"

  // Makes it the calling thread's current device, as most calls of CUDA need it.
  cudaError_t Use() const { return cudaSetDevice(index_); }

  // Waits until everything that is queued on the stream has run, or the mark is reached; `what` is
  // waited for. DeadlineExceeded after the longest wait: the device then hangs, and every later
  // wait for it fails at once.
  absl::Status WaitFor(cudaStream_t stream);
  absl::Status WaitFor(Mark& mark, absl::string_view what);

  // Makes a stream, which WaitForAll waits for too.
  absl::StatusOr<cudaStream_t> MakeStream();
  // Waits for the stream and lets go of it.
  void Destroy(cudaStream_t stream);
  // For all streams, in turn; false if the device hangs. CUDA's calls that wait, as those that free
  // memory do, would then never return: what is on the device is left there until the process ends.
  bool WaitForAll();

 private:
  absl::Status Wait(absl::FunctionRef<absl::StatusOr<bool>()> reached, absl::string_view what);

  const int index_;
  Clock& clock_;
  const absl::Duration wait_max_;
  std::atomic<bool> hangs_ = false;
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_DEVICE_H_
