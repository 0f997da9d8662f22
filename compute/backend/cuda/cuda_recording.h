// Recordings by CUDA's graphs.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_RECORDING_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_RECORDING_H_

#include <cuda_runtime.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "compute/backend/streams.h"

namespace longhaul::compute {

class CudaBackend;

// The first Run is as it would be without, so that what operators make at their first call is
// there; the second is captured; from then on the graph is launched. Where the driver cannot
// capture the work, it is called each time.
class CudaRecording final : public Recording {
 public:
  explicit CudaRecording(CudaBackend& backend) : backend_(backend) {}
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  absl::Status Run(absl::FunctionRef<absl::Status()> work) override;

 private:
  // Makes the graph; without one, `graph_` stays null. The error is the work's.
  absl::Status Capture(absl::FunctionRef<absl::Status()> work);
  void Drop();

  CudaBackend& backend_;
  cudaGraphExec_t graph_ = nullptr;
  bool has_run_ = false;
  bool cannot_capture_ = false;
  int scratch_generation_ = 0;  // of the addresses in the graph
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_RECORDING_H_
