// The CPU as a device: ordinary memory and a pool of threads.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_CPU_BACKEND_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_CPU_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "compute/backend/backend.h"
#include "compute/backend/cpu/cpu_codec_kernels.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/cpu_streams.h"
#include "compute/backend/cpu/thread_pool.h"

namespace longhaul::compute {

// Copies are done when the call returns, as are operators. Sets OpenBLAS, for the whole process, to
// one thread a call: products are cut into tiles and the tiles are the tasks.
class CpuBackend : public Backend {
 public:
  // At most `memory_bytes_max` are allocated at one time.
  CpuBackend(int threads, uint64_t memory_bytes_max);

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string numeric_class() const override;
  const OperatorKernels<float>& Kernels(float) const override { return float_kernels_; }
  const OperatorKernels<double>& Kernels(double) const override { return double_kernels_; }
  const OperatorKernels<BFloat16>& Kernels(BFloat16) const override;  // must not be called
  bool has_bfloat16() const override { return false; }
  const CodecKernels& codec_kernels() const override { return codec_kernels_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(size_t bytes) override {
    return Allocate(bytes);
  }
  absl::Status CopyToDevice(void* device, const void* host, size_t bytes) override;
  absl::Status CopyToHost(void* host, const void* device, size_t bytes) override;
  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    return CopyToDevice(device, host, bytes);
  }
  absl::Status Copy(void* to, const void* from, size_t bytes) override;
  absl::Status Zero(void* device, size_t bytes) override;
  absl::Status Synchronize() override;
  absl::StatusOr<std::unique_ptr<Mark>> MarkNow() override { return MakeCpuMark(); }
  absl::Status After(const Mark&) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<CopyStream>> MakeCopyStream() override {
    return MakeCpuCopyStream();
  }
  absl::StatusOr<std::unique_ptr<DeviceTimer>> MakeTimer() override { return nullptr; }
  std::unique_ptr<Recording> MakeRecording() override;
  int threads() const override { return pool_.threads(); }
  void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) override;

 private:
  const uint64_t memory_bytes_max_;
  std::atomic<uint64_t> allocated_bytes_ = 0;  // by buffers that are there; they subtract
  ThreadPool pool_;
  const CpuKernels<float> float_kernels_{*this};
  const CpuKernels<double> double_kernels_{*this};
  const CpuCodecKernels codec_kernels_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_CPU_BACKEND_H_
