#include "compute/backend/cuda/cuda_backend.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_buffers.h"
#include "compute/backend/cuda/cuda_recording.h"
#include "compute/backend/cuda/cuda_status.h"
#include "compute/backend/cuda/cuda_timer.h"

namespace longhaul::compute {
namespace {

// Of our kernels' bits: the number rises with every change of them.
constexpr int kKernelRevision = 3;
// What cuBLAS advises for Hopper; given, so that it allocates nothing by itself and its choice of
// algorithm does not depend on what else runs.
constexpr size_t kCublasWorkspaceBytes = size_t{32} << 20;
constexpr size_t kResultsMax = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device, Clock& clock,
                                                         absl::Duration wait_max) {
  return CudaBackend::Open(device, clock, wait_max);
}

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Open(int device, Clock& clock,
                                                               absl::Duration wait_max) {
  auto backend = std::unique_ptr<CudaBackend>(new CudaBackend(device, clock, wait_max));
  LH_RETURN_IF_ERROR(backend->Start());
  return backend;
}

absl::Status CudaBackend::Start() {
  const std::string name = device_.name();
  LH_RETURN_IF_ERROR(CudaStatus(device_.Use(), name));
  cudaDeviceProp properties;
  LH_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, device_.index()), name));
  LH_ASSIGN_OR_RETURN(stream_, device_.MakeStream());
  // What the backend itself needs, so that no step makes events for it.
  LH_RETURN_IF_ERROR(marks_.Reserve(LaunchWindow::kParts + PinnedRing::kSegments));
  LH_ASSIGN_OR_RETURN(uploads_, PinnedRing::Make(device_, marks_, stream_));
  LH_ASSIGN_OR_RETURN(results_, AllocatePinned(kResultsMax * sizeof(double)));
  pending_.reserve(kResultsMax);
  LH_RETURN_IF_ERROR(CublasStatus(cublasCreate(&cublas_), name));
  LH_ASSIGN_OR_RETURN(cublas_workspace_, AllocateOnDevice(device_, kCublasWorkspaceBytes));
  LH_RETURN_IF_ERROR(CublasStatus(cublasSetStream(cublas_, stream_), name));
  LH_RETURN_IF_ERROR(CublasStatus(
      cublasSetWorkspace(cublas_, cublas_workspace_->data(), kCublasWorkspaceBytes), name));
  // Sums of parts in floats too, where the result is in bfloat16. Products of floats are in floats,
  // not in TF32, unless asked for.
  constexpr int kMathMode = static_cast<int>(CUBLAS_DEFAULT_MATH) |
                            static_cast<int>(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  LH_RETURN_IF_ERROR(
      CublasStatus(cublasSetMathMode(cublas_, static_cast<cublasMath_t>(kMathMode)), name));
  LH_ASSIGN_OR_RETURN(
      lt_, cuda::LtProducts::Make(stream_, cublas_workspace_->data(), kCublasWorkspaceBytes));
  // On other cards cuBLASLt computes it in a kernel of its own, slower than ours.
  fuses_gelu_ = properties.major == 9 || properties.major == 10;
  attention_ = std::make_unique<cuda::AttentionChoice>(cuda::OpenFusedAttention(stream_));
  int cublas_version = 0;
  LH_RETURN_IF_ERROR(CublasStatus(cublasGetVersion(cublas_, &cublas_version), name));
  numeric_class_ =
      absl::StrCat("cuda-longhaul-", kKernelRevision, "-sm", properties.major, properties.minor,
                   "x", properties.multiProcessorCount, "-cublas-", cublas_version, "-lt-",
                   cublasLtGetVersion(), "-attention-", attention_->library_name(), "-f32");
  return absl::OkStatus();
}

CudaBackend::~CudaBackend() {
  const bool answers = device_.WaitForAll();
  if (cublas_ != nullptr && answers) cublasDestroy(cublas_);
  if (lt_ != nullptr && !answers) lt_->KeepHandle();
  if (attention_ != nullptr && !answers) attention_->KeepLibrary();
  if (stream_ != nullptr) device_.Destroy(stream_);
}

// Zeroed before it returns, for copy streams too.
absl::StatusOr<std::unique_ptr<Buffer>> CudaBackend::Allocate(size_t bytes) {
  LH_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, AllocateOnDevice(device_, bytes));
  LH_RETURN_IF_ERROR(Zero(buffer->data(), bytes));
  LH_RETURN_IF_ERROR(device_.WaitFor(stream_));
  return buffer;
}

absl::StatusOr<std::unique_ptr<Buffer>> CudaBackend::AllocatePinned(size_t bytes) {
  return compute::AllocatePinned(device_, bytes);
}

absl::Status CudaBackend::CopyToDevice(void* device, const void* host, size_t bytes) {
  LH_RETURN_IF_ERROR(Admit());
  return CudaStatus(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream()),
                    absl::StrCat("copy to ", device_.name()));
}

absl::Status CudaBackend::CopyToHost(void* host, const void* device, size_t bytes) {
  LH_RETURN_IF_ERROR(Admit());
  return CudaStatus(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream()),
                    absl::StrCat("copy from ", device_.name()));
}

absl::Status CudaBackend::Upload(void* device, const void* host, size_t bytes) {
  LH_RETURN_IF_ERROR(Admit());
  return uploads_->Upload(device, host, bytes);
}

absl::Status CudaBackend::Copy(void* to, const void* from, size_t bytes) {
  LH_RETURN_IF_ERROR(Admit());
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()),
                    absl::StrCat("copy on ", device_.name()));
}

absl::Status CudaBackend::Zero(void* device, size_t bytes) {
  LH_RETURN_IF_ERROR(Admit());
  return CudaStatus(cudaMemsetAsync(device, 0, bytes, stream()),
                    absl::StrCat("zero on ", device_.name()));
}

absl::Status CudaBackend::Synchronize() {
  const absl::Status status = device_.WaitFor(stream_);
  const auto* const results = static_cast<const double*>(results_->data());
  for (const Result& result : pending_) {
    if (status.ok()) std::copy_n(results + result.first, result.count, result.host);
  }
  pending_.clear();
  return status;
}

absl::StatusOr<std::unique_ptr<Mark>> CudaBackend::MarkNow() {
  return MarkStream(device_, marks_, stream_);
}

absl::Status CudaBackend::After(const Mark& mark) { return LetStreamWait(device_, stream_, mark); }

absl::StatusOr<std::unique_ptr<CopyStream>> CudaBackend::MakeCopyStream() {
  return MakeCudaCopyStream(device_, marks_);
}

absl::StatusOr<std::unique_ptr<DeviceTimer>> CudaBackend::MakeTimer() {
  return std::make_unique<CudaTimer>(device_, times_, stream_);
}

std::unique_ptr<Recording> CudaBackend::MakeRecording() {
  return std::make_unique<CudaRecording>(*this);
}

void CudaBackend::ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  for (int64_t i = 0; i < tasks; ++i) task(i);
}

absl::StatusOr<void*> CudaBackend::Scratch(size_t bytes) {
  if (scratch_ == nullptr || scratch_->bytes() < bytes) {
    LH_RETURN_IF_ERROR(Synchronize());
    scratch_ = nullptr;
    LH_ASSIGN_OR_RETURN(scratch_, Allocate(bytes));
    ++scratch_generation_;
  }
  return scratch_->data();
}

absl::Status CudaBackend::Return(const double* device, double* host, int64_t count) {
  auto* const results = static_cast<double*>(results_->data());
  while (count > 0) {
    const size_t used = pending_.empty() ? 0 : pending_.back().first + pending_.back().count;
    if (used == kResultsMax) {
      LH_RETURN_IF_ERROR(Synchronize());
      continue;
    }
    const size_t part = std::min(static_cast<size_t>(count), kResultsMax - used);
    LH_RETURN_IF_ERROR(CopyToHost(results + used, device, part * sizeof(double)));
    pending_.push_back({host, used, part});
    device += part;
    host += part;
    count -= static_cast<int64_t>(part);
  }
  return absl::OkStatus();
}

}  // namespace longhaul::compute
