// What a device offers to the operators: memory, copies, ordering. The CPU implements it with
// ordinary memory and a thread pool; CUDA with device buffers, streams and events.
#ifndef LONGHAUL_COMPUTE_BACKEND_BACKEND_H_
#define LONGHAUL_COMPUTE_BACKEND_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/element.h"
#include "compute/backend/streams.h"

namespace longhaul::compute {

enum class DeviceKind { kCpu, kCuda };

template <typename T>
class OperatorKernels;  // compute/backend/operator_kernels.h
class CodecKernels;     // compute/backend/codec_kernels.h

// Owns one allocation on a device, or pinned on the host; zeroed, 64-byte aligned. Must not outlive
// its Backend.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() = 0;  // device address; of pinned memory the host's
  virtual size_t bytes() const = 0;
};

// One device with one compute stream: operators called on it run in call order. One thread at a
// time may call it.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceKind kind() const = 0;

  // Names what the bits of results depend on: library, version, kernel set
  // ("cpu-longhaul-3-fma-f32": the revision of our own kernels, which give the same bits on every
  // processor that has their instructions). Two nodes whose classes are equal compute equal bits.
  virtual std::string numeric_class() const = 0;

  // The operators' kernels for elements of the argument's type, whose value does not matter.
  virtual const OperatorKernels<float>& Kernels(float) const = 0;
  virtual const OperatorKernels<double>& Kernels(double) const = 0;
  // Only where has_bfloat16(): processors compute in floats.
  virtual const OperatorKernels<BFloat16>& Kernels(BFloat16) const = 0;
  virtual bool has_bfloat16() const = 0;
  virtual const CodecKernels& codec_kernels() const = 0;

  // ResourceExhausted with the sizes when it does not fit.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // Host memory that devices copy from and to without making the caller wait.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(size_t bytes) = 0;

  // Ordered with the operators; the host memory must stay valid until Synchronize returns.
  virtual absl::Status CopyToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device, size_t bytes) = 0;
  // Ordered with the operators; the host memory is the caller's again when it returns.
  virtual absl::Status Upload(void* device, const void* host, size_t bytes) = 0;
  // From device memory to device memory that does not overlap it; ordered with the operators.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  // Sets device memory to zero; ordered with the operators.
  virtual absl::Status Zero(void* device, size_t bytes) = 0;
  // Returns when everything called before has finished, with its error if it failed.
  // DeadlineExceeded if the device does not finish in the time that its backend was made with.
  virtual absl::Status Synchronize() = 0;

  // The point in the compute stream now.
  virtual absl::StatusOr<std::unique_ptr<Mark>> MarkNow() = 0;
  // What is called from now on waits for the mark, on the device. The caller does not wait.
  virtual absl::Status After(const Mark& mark) = 0;
  virtual absl::StatusOr<std::unique_ptr<CopyStream>> MakeCopyStream() = 0;
  // Null on the CPU, where the caller's clock tells the time of a call.
  virtual absl::StatusOr<std::unique_ptr<DeviceTimer>> MakeTimer() = 0;
  virtual std::unique_ptr<Recording> MakeRecording() = 0;

  // CPU only: threads that run the tasks of ParallelFor. Results must not depend on it.
  virtual int threads() const = 0;
  // CPU only: runs task(0) ... task(tasks-1), each once, over the backend's threads and the caller;
  // returns when all are done. Which thread runs a task must not influence results. Callers cut
  // work into tasks whose number and bounds depend on shapes, and on threads() only where no bit
  // depends on the cut.
  virtual void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) = 0;
};

// `threads` >= 1 counts the calling thread. Threads sleep between calls, after a moment.
std::unique_ptr<Backend> MakeCpuBackend(int threads);

// The longest that a device may take for all that is queued on it, unless told otherwise.
inline constexpr absl::Duration kDeviceWaitMax = absl::Minutes(5);

// Card number `device`, as CUDA counts them. FailedPrecondition, with what to do, if it is not
// there or if driver, card and build do not fit. Every wait for the card ends after `wait_max` of
// `clock`, which must outlive the backend: it counts as hung then, and every later call fails. A
// program has the one of the library that it links: compute/cuda.cmake says which there are.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device, Clock& clock,
                                                         absl::Duration wait_max = kDeviceWaitMax);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_BACKEND_H_
