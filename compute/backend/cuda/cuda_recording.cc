#include "compute/backend/cuda/cuda_recording.h"

#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {

CudaRecording::~CudaRecording() { Drop(); }

void CudaRecording::Drop() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
}

absl::Status CudaRecording::Run(absl::FunctionRef<absl::Status()> work) {
  if (scratch_generation_ != backend_.scratch_generation()) {
    Drop();
    has_run_ = false;
  }
  if (!has_run_ || cannot_capture_) {
    const absl::Status status = work();
    has_run_ = true;
    scratch_generation_ = backend_.scratch_generation();
    return status;
  }
  if (graph_ == nullptr) LH_RETURN_IF_ERROR(Capture(work));
  if (graph_ == nullptr) return work();
  LH_RETURN_IF_ERROR(backend_.Admit(LaunchWindow::kPartOperations));
  return CudaStatus(cudaGraphLaunch(graph_, backend_.stream()), "a recorded micro-batch");
}

absl::Status CudaRecording::Capture(absl::FunctionRef<absl::Status()> work) {
  const cudaStream_t stream = backend_.stream();
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    cannot_capture_ = true;
    cudaGetLastError();
    return absl::OkStatus();
  }
  const absl::Status status = work();
  cudaGraph_t graph = nullptr;
  // What the driver refuses within a capture shows in the work's status too.
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) {
    cannot_capture_ = true;
    cudaGetLastError();
    return absl::OkStatus();
  }
  if (status.ok() && cudaGraphInstantiate(&graph_, graph, 0) != cudaSuccess) {
    graph_ = nullptr;
    cannot_capture_ = true;
    cudaGetLastError();
  }
  cudaGraphDestroy(graph);
  return status;
}

}  // namespace longhaul::compute
