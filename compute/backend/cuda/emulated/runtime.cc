#include <cstdio>

#include "compute/backend/cuda/emulated/environment.h"
#include "compute/backend/cuda/emulated/state.h"

// The machine, its devices and errors.
namespace longhaul::compute::emulated {
namespace {

constexpr int kRuntimeVersion = 13000;

std::mutex& TheMutex() {
  static std::mutex mutex;
  return mutex;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

cudaError_t StickyError() {
  if (TheMachine().lost != 0) return static_cast<cudaError_t>(TheMachine().lost);
  return IsBroken(TheMachine()) ? cudaErrorIllegalAddress : cudaSuccess;
}

}  // namespace

Machine& TheMachine() {
  static Machine machine = MachineFromEnvironment();
  return machine;
}

Counts& MutableCounts() {
  static Counts counts;
  return counts;
}
Counts TheCounts() {
  const Call call;
  return MutableCounts();
}

Call::Call() : lock_(TheMutex()), error_(StickyError()) {
  if (error_ != cudaSuccess) DropEverything();
}

cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t CheckDevice(int device) {
  const Machine& machine = TheMachine();
  if (machine.driver_version < kRuntimeVersion) return cudaErrorInsufficientDriver;
  if (machine.devices == 0) return cudaErrorNoDevice;
  return device >= 0 && device < machine.devices ? cudaSuccess : cudaErrorInvalidDevice;
}

int CurrentDevice() { return current_device; }

}  // namespace longhaul::compute::emulated

using namespace longhaul::compute::emulated;  // NOLINT: the names of CUDA are global

const char* cudaGetErrorName(cudaError_t error) {
#define LONGHAUL_NAME(name) \
  case name:                \
    return #name;
  switch (error) {
    LONGHAUL_NAME(cudaSuccess)
    LONGHAUL_NAME(cudaErrorInvalidValue)
    LONGHAUL_NAME(cudaErrorMemoryAllocation)
    LONGHAUL_NAME(cudaErrorInsufficientDriver)
    LONGHAUL_NAME(cudaErrorNoDevice)
    LONGHAUL_NAME(cudaErrorInvalidDevice)
    LONGHAUL_NAME(cudaErrorNoKernelImageForDevice)
    LONGHAUL_NAME(cudaErrorECCUncorrectable)
    LONGHAUL_NAME(cudaErrorInvalidResourceHandle)
    LONGHAUL_NAME(cudaErrorIllegalState)
    LONGHAUL_NAME(cudaErrorNotReady)
    LONGHAUL_NAME(cudaErrorIllegalAddress)
    LONGHAUL_NAME(cudaErrorStreamCaptureUnsupported)
    LONGHAUL_NAME(cudaErrorStreamCaptureInvalidated)
    LONGHAUL_NAME(cudaErrorStreamCaptureIsolation)
    LONGHAUL_NAME(cudaErrorUnknown)
  }
#undef LONGHAUL_NAME
  return "?";
}
const char* cudaGetErrorString(cudaError_t) { return "as the emulated machine was told"; }

cudaError_t cudaGetLastError() {
  const Call call;
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return call.error() != cudaSuccess ? call.error() : error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call;
  *count = 0;
  const cudaError_t error = CheckDevice(0);
  if (error == cudaSuccess) *count = TheMachine().devices;
  return Note(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = TheMachine().driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const Call call;
  const cudaError_t error = CheckDevice(device);
  if (error != cudaSuccess) return Note(error);
  current_device = device;
  return call.error();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call;
  const cudaError_t error = CheckDevice(device);
  if (error != cudaSuccess) return Note(error);
  const Machine& machine = TheMachine();
  *properties = {};
  std::strcpy(properties->name, "emulated");
  const size_t seed = std::hash<std::string>()(machine.name);
  std::memcpy(properties->uuid.bytes, &seed, sizeof(seed));
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->pciBusID = device + 1;
  properties->totalGlobalMem = machine.memory_bytes;
  properties->major = machine.capability / 10;
  properties->minor = machine.capability % 10;
  properties->multiProcessorCount = 4;
  return call.error();
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  const Call call;
  const cudaError_t error = CheckDevice(device);
  if (error != cudaSuccess) return Note(error);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0",
                static_cast<unsigned>(device + 1));
  return call.error();
}
