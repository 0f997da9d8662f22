// A CUDA device as a backend: one compute stream, copy streams, device memory, pinned memory.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BACKEND_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BACKEND_H_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/cuda_codec_kernels.h"
#include "compute/backend/cuda/cuda_device.h"
#include "compute/backend/cuda/cuda_kernels.h"
#include "compute/backend/cuda/cuda_streams.h"
#include "compute/backend/cuda/fused_attention.h"
#include "compute/backend/cuda/launch_window.h"
#include "compute/backend/cuda/lt_product.h"
#include "compute/backend/cuda/pinned_ring.h"

namespace longhaul::compute {

// Operators and copies are queued on the stream and have run once Synchronize returns OK. An error
// of a kernel shows at a later call: the device is then of no use to this process.
class CudaBackend final : public Backend {
 public:
  // As MakeCudaBackend.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Open(int device, Clock& clock,
                                                           absl::Duration wait_max);
  ~CudaBackend() override;

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string numeric_class() const override { return numeric_class_; }
  const OperatorKernels<float>& Kernels(float) const override { return float_kernels_; }
  const OperatorKernels<double>& Kernels(double) const override { return double_kernels_; }
  const OperatorKernels<BFloat16>& Kernels(BFloat16) const override { return bfloat16_kernels_; }
  bool has_bfloat16() const override { return true; }
  const CodecKernels& codec_kernels() const override { return codec_kernels_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(size_t bytes) override;
  absl::Status CopyToDevice(void* device, const void* host, size_t bytes) override;
  absl::Status CopyToHost(void* host, const void* device, size_t bytes) override;
  absl::Status Upload(void* device, const void* host, size_t bytes) override;
  absl::Status Copy(void* to, const void* from, size_t bytes) override;
  absl::Status Zero(void* device, size_t bytes) override;
  absl::Status Synchronize() override;
  absl::StatusOr<std::unique_ptr<Mark>> MarkNow() override;
  absl::Status After(const Mark& mark) override;
  absl::StatusOr<std::unique_ptr<CopyStream>> MakeCopyStream() override;
  absl::StatusOr<std::unique_ptr<DeviceTimer>> MakeTimer() override;
  std::unique_ptr<Recording> MakeRecording() override;
  int threads() const override { return 1; }
  void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) override;

  int device() const { return device_.index(); }  // as CUDA counts them

  // For the kernels. -----------------------------------------------------------------------------

  // Makes the device the calling thread's current one, as most calls of CUDA need it.
  void MakeCurrent() const { device_.Use(); }
  // The stream, of the device that is now current.
  cudaStream_t stream() const {
    MakeCurrent();
    return stream_;
  }
  cublasHandle_t cublas() const { return cublas_; }
  // Called before so many operations are queued, as LaunchWindow counts them. Waits where the host
  // is far ahead of the device, DeadlineExceeded if that hangs.
  absl::Status Admit(int operations = 1) { return window_.Admit(stream_, operations); }
  cuda::AttentionChoice& attention() { return *attention_; }
  // For tests, before stages are made: in place of the library that the build has.
  void UseFusedAttention(absl::StatusOr<std::unique_ptr<cuda::FusedAttention>> library) {
    attention_ = std::make_unique<cuda::AttentionChoice>(std::move(library));
  }
  // Whether products with GELU or its gradient as an epilogue are faster than one after the other.
  bool fuses_gelu() const { return fuses_gelu_; }
  // As cuda::LtProducts::Run.
  template <typename T>
  absl::StatusOr<bool> Run(const cuda::LtProduct<T>& product) {
    const absl::Status admitted = Admit();
    if (!admitted.ok()) return admitted;
    MakeCurrent();
    return lt_->Run(product);
  }

  // Device memory for one operator: what it holds is lost with the next call. Grows where it must,
  // which waits for the stream; so the largest operators should come first.
  absl::StatusOr<void*> Scratch(size_t bytes);
  template <typename T>
  absl::StatusOr<T*> ScratchOf(int64_t elements) {
    absl::StatusOr<void*> scratch = Scratch(static_cast<size_t>(elements) * sizeof(T));
    if (!scratch.ok()) return scratch.status();
    return static_cast<T*>(*scratch);
  }

  // Rises when Scratch grows: addresses that it gave before are no more.
  int scratch_generation() const { return scratch_generation_; }

  // Queues the copy of `count` device values to host, which gets them when Synchronize returns.
  absl::Status Return(const double* device, double* host, int64_t count = 1);

 private:
  CudaBackend(int device, Clock& clock, absl::Duration wait_max)
      : device_(device, clock, wait_max) {}
  absl::Status Start();

  struct Result {
    double* host;
    size_t first;  // in results_
    size_t count;
  };

  CudaDevice device_;
  EventPool marks_{device_, cudaEventDisableTiming};
  EventPool times_{device_, cudaEventDefault};
  LaunchWindow window_{device_, marks_};
  std::string numeric_class_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<PinnedRing> uploads_;
  cublasHandle_t cublas_ = nullptr;
  std::unique_ptr<cuda::LtProducts> lt_;
  bool fuses_gelu_ = false;
  std::unique_ptr<cuda::AttentionChoice> attention_;
  std::unique_ptr<Buffer> cublas_workspace_;
  std::unique_ptr<Buffer> scratch_;
  int scratch_generation_ = 0;
  std::unique_ptr<Buffer> results_;  // pinned, kResultsMax doubles
  std::vector<Result> pending_;      // copies under way
  const CudaKernels<float> float_kernels_{*this};
  const CudaKernels<double> double_kernels_{*this};
  const CudaKernels<BFloat16> bfloat16_kernels_{*this};
  const CudaCodecKernels codec_kernels_{*this};
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BACKEND_H_
