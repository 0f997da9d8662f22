#include "compute/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {
namespace {

// Of our kernels' bits: the number rises with every change of them.
constexpr int kKernelRevision = 1;
// What cuBLAS advises for Hopper; given, so that it allocates nothing by itself and its choice of
// algorithm does not depend on what else runs.
constexpr size_t kCublasWorkspaceBytes = size_t{32} << 20;
constexpr size_t kResultsMax = 4096;

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  // Waits for the device.
  ~CudaBuffer() override { cudaFree(data_); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  void* data() override { return data_; }
  size_t bytes() const override { return bytes_; }

 private:
  void* const data_;
  const size_t bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device) {
  return CudaBackend::Open(device);
}

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Open(int device) {
  auto backend = std::unique_ptr<CudaBackend>(new CudaBackend(device));
  LH_RETURN_IF_ERROR(backend->Start());
  return backend;
}

std::string CudaBackend::Name() const { return absl::StrCat("CUDA device ", device_); }

absl::Status CudaBackend::Start() {
  LH_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), Name()));
  cudaDeviceProp properties;
  LH_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, device_), Name()));
  LH_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                absl::StrCat(Name(), ": a stream")));
  void* results = nullptr;
  LH_RETURN_IF_ERROR(CudaStatus(cudaMallocHost(&results, kResultsMax * sizeof(double)),
                                absl::StrCat(Name(), ": pinned memory")));
  results_ = static_cast<double*>(results);
  LH_RETURN_IF_ERROR(CublasStatus(cublasCreate(&cublas_), Name()));
  LH_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&cublas_workspace_, kCublasWorkspaceBytes),
                                absl::StrCat(Name(), ": cuBLAS's workspace")));
  LH_RETURN_IF_ERROR(CublasStatus(cublasSetStream(cublas_, stream_), Name()));
  LH_RETURN_IF_ERROR(
      CublasStatus(cublasSetWorkspace(cublas_, cublas_workspace_, kCublasWorkspaceBytes), Name()));
  // Products of floats in floats: not in TF32.
  LH_RETURN_IF_ERROR(CublasStatus(cublasSetMathMode(cublas_, CUBLAS_PEDANTIC_MATH), Name()));
  int cublas_version = 0;
  LH_RETURN_IF_ERROR(CublasStatus(cublasGetVersion(cublas_, &cublas_version), Name()));
  numeric_class_ = absl::StrCat("cuda-longhaul-", kKernelRevision, "-sm", properties.major,
                                properties.minor, "-cublas-", cublas_version, "-f32");
  return absl::OkStatus();
}

CudaBackend::~CudaBackend() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (cublas_ != nullptr) cublasDestroy(cublas_);
  if (cublas_workspace_ != nullptr) cudaFree(cublas_workspace_);
  if (results_ != nullptr) cudaFreeHost(results_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

const OperatorKernels<BFloat16>& CudaBackend::Kernels(BFloat16) const {
  LH_CHECK(false, "this backend has no kernels for bfloat16");
}

absl::StatusOr<std::unique_ptr<Buffer>> CudaBackend::Allocate(size_t bytes) {
  LH_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), Name()));
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
  if (error != cudaSuccess) {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    cudaGetLastError();  // what was noted of it: said below
    return CudaStatus(error, absl::StrCat("cannot allocate ", bytes, " bytes on ", Name(), ", of ",
                                          total, " bytes of which ", free, " are free"));
  }
  auto buffer = std::make_unique<CudaBuffer>(data, bytes);
  LH_RETURN_IF_ERROR(Zero(data, bytes));
  return buffer;
}

absl::Status CudaBackend::CopyToDevice(void* device, const void* host, size_t bytes) {
  return CudaStatus(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream()),
                    absl::StrCat("copy to ", Name()));
}

absl::Status CudaBackend::CopyToHost(void* host, const void* device, size_t bytes) {
  return CudaStatus(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream()),
                    absl::StrCat("copy from ", Name()));
}

absl::Status CudaBackend::Copy(void* to, const void* from, size_t bytes) {
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()),
                    absl::StrCat("copy on ", Name()));
}

absl::Status CudaBackend::Zero(void* device, size_t bytes) {
  return CudaStatus(cudaMemsetAsync(device, 0, bytes, stream()), absl::StrCat("zero on ", Name()));
}

absl::Status CudaBackend::Synchronize() {
  const absl::Status status = CudaStatus(cudaStreamSynchronize(stream()), Name());
  for (const Result& result : pending_) {
    if (status.ok()) *result.host = results_[result.slot];
  }
  pending_.clear();
  return status;
}

void CudaBackend::ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  for (int64_t i = 0; i < tasks; ++i) task(i);
}

absl::StatusOr<void*> CudaBackend::Scratch(size_t bytes) {
  if (scratch_ == nullptr || scratch_->bytes() < bytes) {
    LH_RETURN_IF_ERROR(Synchronize());
    scratch_ = nullptr;
    LH_ASSIGN_OR_RETURN(scratch_, Allocate(bytes));
  }
  return scratch_->data();
}

absl::Status CudaBackend::Return(const double* device, double* host) {
  if (pending_.size() == kResultsMax) LH_RETURN_IF_ERROR(Synchronize());
  const size_t slot = pending_.size();
  LH_RETURN_IF_ERROR(CopyToHost(results_ + slot, device, sizeof(double)));
  pending_.push_back({host, slot});
  return absl::OkStatus();
}

}  // namespace longhaul::compute
