#include <algorithm>
#include <cstdlib>
#include <map>

#include "compute/backend/cuda/emulated/cuda_runtime.h"

// Memory, copies and devices; copies and operators are done when the call returns.
namespace {

cudaError_t last_error = cudaSuccess;
std::map<void*, size_t> allocations;  // of the device
int current_device = -1;

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t CheckDevice(int device) {
  const auto& machine = longhaul::compute::emulated::TheMachine();
  if (machine.driver_version == 0) return cudaErrorInsufficientDriver;
  if (machine.devices == 0) return cudaErrorNoDevice;
  return device >= 0 && device < machine.devices ? cudaSuccess : cudaErrorInvalidDevice;
}

size_t AllocatedBytes() {
  size_t sum = 0;
  for (const auto& [data, bytes] : allocations) sum += bytes;
  return sum;
}

}  // namespace

namespace longhaul::compute::emulated {

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

}  // namespace longhaul::compute::emulated

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
  }
  return "?";
}
const char* cudaGetErrorString(cudaError_t) { return "as the emulated machine was told"; }

cudaError_t cudaGetLastError() {
  if (longhaul::compute::emulated::TheMachine().fails) return cudaErrorIllegalAddress;
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  const cudaError_t error = CheckDevice(0);
  if (error == cudaSuccess) *count = longhaul::compute::emulated::TheMachine().devices;
  return Note(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = longhaul::compute::emulated::TheMachine().driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const cudaError_t error = CheckDevice(device);
  if (error == cudaSuccess) current_device = device;
  return Note(error);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const cudaError_t error = CheckDevice(device);
  if (error != cudaSuccess) return Note(error);
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->totalGlobalMem = longhaul::compute::emulated::TheMachine().memory_bytes;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = longhaul::compute::emulated::TheMachine().memory_bytes;
  *free = *total - std::min(*total, AllocatedBytes());
  return cudaSuccess;
}

// Not zeroed, as on a card: bytes that no number is made of.
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = nullptr;
  if (CheckDevice(current_device) != cudaSuccess) return Note(CheckDevice(current_device));
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  if (bytes > free) return Note(cudaErrorMemoryAllocation);
  *data = std::aligned_alloc(256, std::max<size_t>(256, (bytes + 255) / 256 * 256));
  if (*data == nullptr) return Note(cudaErrorMemoryAllocation);
  std::memset(*data, 0xff, bytes);
  allocations[*data] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  allocations.erase(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = std::malloc(bytes);
  return *data != nullptr ? cudaSuccess : Note(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  if (bytes > 0) std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return Note(CheckDevice(current_device));
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaGetLastError(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaGetLastError(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaGetLastError(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaGetLastError();
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaGetLastError(); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaGetLastError(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaGetLastError(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaGetLastError();
}
