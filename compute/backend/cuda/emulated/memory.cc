#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/check.h"
#include "compute/backend/cuda/emulated/state.h"

// Memory of the device and pinned memory of the host, and copies between them.
namespace longhaul::compute::emulated {
namespace {

struct Allocation {
  size_t bytes;
  int device;
};
// By address. Never destroyed: what a device that hangs holds is there when the process ends.
using Allocations = std::map<const char*, Allocation>;

Allocations& OnDevice() {
  static auto& allocations = *new Allocations;
  return allocations;
}
Allocations& Pinned() {
  static auto& allocations = *new Allocations;
  return allocations;
}

bool LiesIn(const Allocations& allocations, const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  auto after = allocations.upper_bound(begin);
  if (after == allocations.begin()) return false;
  const auto& [start, allocation] = *--after;
  const auto offset = static_cast<size_t>(begin - start);
  return offset <= allocation.bytes && bytes <= allocation.bytes - offset;
}

// Of the current device.
size_t AllocatedBytes() {
  size_t sum = 0;
  for (const auto& [data, allocation] : OnDevice()) {
    if (allocation.device == CurrentDevice()) sum += allocation.bytes;
  }
  return sum;
}

cudaError_t Allocate(Allocations& allocations, void** data, size_t bytes) {
  *data = std::aligned_alloc(256, std::max<size_t>(256, (bytes + 255) / 256 * 256));
  if (*data == nullptr) return Note(cudaErrorMemoryAllocation);
  // Not zeroed, as on a card: bytes that no number is made of.
  std::memset(*data, 0xff, bytes);
  allocations[static_cast<const char*>(*data)] = {bytes, CurrentDevice()};
  return cudaSuccess;
}

cudaError_t Free(Allocations& allocations, void* data, const char* name) {
  const Call call;
  if (data == nullptr) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  if (allocations.count(static_cast<const char*>(data)) == 0) return Note(cudaErrorInvalidValue);
  // What is queued may use it. A lost device runs nothing more.
  if (call.error() == cudaSuccess) DrainDevice(name);
  allocations.erase(static_cast<const char*>(data));
  std::free(data);
  return call.error();
}

void PushCopy(EmulatedStream& stream, void* to, const void* from, size_t bytes) {
  Push(stream, {[=] {
                  std::memcpy(to, from, bytes);
                  return true;
                },
                true});
}

}  // namespace
}  // namespace longhaul::compute::emulated

using namespace longhaul::compute::emulated;  // NOLINT: the names of CUDA are global

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Call call;
  *total = TheMachine().memory_bytes;
  *free = *total - std::min(*total, AllocatedBytes());
  return call.error();
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  if (CheckDevice(CurrentDevice()) != cudaSuccess) return Note(CheckDevice(CurrentDevice()));
  const size_t allocated = AllocatedBytes(), all = TheMachine().memory_bytes;
  if (allocated > all || bytes > all - allocated) return Note(cudaErrorMemoryAllocation);
  ++MutableCounts().allocations;
  return Allocate(OnDevice(), data, bytes);
}

cudaError_t cudaFree(void* data) { return Free(OnDevice(), data, "cudaFree"); }

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  if (bytes > TheMachine().pinned_bytes) return Note(cudaErrorMemoryAllocation);
  ++MutableCounts().pinned_allocations;
  return Allocate(Pinned(), data, bytes);
}

cudaError_t cudaFreeHost(void* data) { return Free(Pinned(), data, "cudaFreeHost"); }

// From memory that is not pinned the bytes are taken now, and to such memory the caller waits for
// them: so do cards.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (bytes == 0) return cudaSuccess;
  if ((kind != cudaMemcpyDeviceToHost && !LiesIn(OnDevice(), to, bytes)) ||
      (kind != cudaMemcpyHostToDevice && !LiesIn(OnDevice(), from, bytes))) {
    return Note(cudaErrorInvalidValue);
  }
  EmulatedStream& queue = *Resolve(stream);
  const bool pageable = (kind == cudaMemcpyHostToDevice && !LiesIn(Pinned(), from, bytes)) ||
                        (kind == cudaMemcpyDeviceToHost && !LiesIn(Pinned(), to, bytes));
  if (pageable && SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  if (pageable && kind == cudaMemcpyHostToDevice) {
    const auto* const begin = static_cast<const char*>(from);
    Push(queue, {[to, taken = std::vector<char>(begin, begin + bytes)] {
                   std::memcpy(to, taken.data(), taken.size());
                   return true;
                 },
                 true});
    return cudaSuccess;
  }
  PushCopy(queue, to, from, bytes);
  LH_CHECK(!pageable || Drain(queue), "cudaMemcpyAsync would never return: a stream hangs");
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (bytes == 0) return cudaSuccess;
  if (!LiesIn(OnDevice(), data, bytes)) return Note(cudaErrorInvalidValue);
  Push(*Resolve(stream), {[=] {
                            std::memset(data, value, bytes);
                            return true;
                          },
                          true});
  return cudaSuccess;
}
