// For tests: a backend that counts what is allocated from it, and copies.
#ifndef LONGHAUL_COMPUTE_TESTING_COUNTING_BACKEND_H_
#define LONGHAUL_COMPUTE_TESTING_COUNTING_BACKEND_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// Forwards everything to another backend, which must outlive it, as it must its buffers.
class CountingBackend : public Backend {
 public:
  explicit CountingBackend(Backend& backend) : backend_(backend) {}

  int allocations() const { return allocations_; }
  int copies() const { return copies_; }  // within the device
  int64_t bytes() const { return bytes_; }
  // The most that was allocated at one time.
  int64_t peak_bytes() const { return peak_bytes_; }

  DeviceKind kind() const override { return backend_.kind(); }
  std::string numeric_class() const override { return backend_.numeric_class(); }
  const OperatorKernels<float>& Kernels(float of) const override { return backend_.Kernels(of); }
  const OperatorKernels<double>& Kernels(double of) const override { return backend_.Kernels(of); }
  const OperatorKernels<BFloat16>& Kernels(BFloat16 of) const override {
    return backend_.Kernels(of);
  }
  bool has_bfloat16() const override { return backend_.has_bfloat16(); }
  const CodecKernels& codec_kernels() const override { return backend_.codec_kernels(); }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    LH_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, backend_.Allocate(bytes));
    ++allocations_;
    bytes_ += static_cast<int64_t>(bytes);
    peak_bytes_ = std::max(peak_bytes_, bytes_);
    return std::make_unique<CountedBuffer>(std::move(buffer), bytes_);
  }
  absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(size_t bytes) override {
    return backend_.AllocatePinned(bytes);
  }
  absl::Status CopyToDevice(void* device, const void* host, size_t bytes) override {
    return backend_.CopyToDevice(device, host, bytes);
  }
  absl::Status CopyToHost(void* host, const void* device, size_t bytes) override {
    return backend_.CopyToHost(host, device, bytes);
  }
  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    return backend_.Upload(device, host, bytes);
  }
  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    ++copies_;
    return backend_.Copy(to, from, bytes);
  }
  absl::Status Zero(void* device, size_t bytes) override { return backend_.Zero(device, bytes); }
  absl::Status Synchronize() override { return backend_.Synchronize(); }
  absl::StatusOr<std::unique_ptr<Mark>> MarkNow() override { return backend_.MarkNow(); }
  absl::Status After(const Mark& mark) override { return backend_.After(mark); }
  absl::StatusOr<std::unique_ptr<CopyStream>> MakeCopyStream() override {
    return backend_.MakeCopyStream();
  }
  absl::StatusOr<std::unique_ptr<DeviceTimer>> MakeTimer() override { return backend_.MakeTimer(); }
  std::unique_ptr<Recording> MakeRecording() override { return backend_.MakeRecording(); }
  int threads() const override { return backend_.threads(); }
  void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) override {
    backend_.ParallelFor(tasks, task);
  }

 private:
  class CountedBuffer : public Buffer {
   public:
    CountedBuffer(std::unique_ptr<Buffer> buffer, int64_t& total)
        : buffer_(std::move(buffer)), total_(total) {}
    ~CountedBuffer() override { total_ -= static_cast<int64_t>(buffer_->bytes()); }
    void* data() override { return buffer_->data(); }
    size_t bytes() const override { return buffer_->bytes(); }

   private:
    const std::unique_ptr<Buffer> buffer_;
    int64_t& total_;
  };

  Backend& backend_;
  int allocations_ = 0;
  int copies_ = 0;
  int64_t bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_TESTING_COUNTING_BACKEND_H_
