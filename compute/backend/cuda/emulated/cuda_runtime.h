// CUDA's runtime and language, as far as Longhaul's kernels use them, on the CPU: the kernels'
// files compile unchanged as C++ and run here, so that their tests need no card. Found instead of
// the toolkit's header by its place in the include path. Not a device: it says nothing about speed.
//
// A block's threads are fibers of the calling thread that change only where they wait for each
// other, in an order that is turned around from one launch to the next: a result that depends on
// the order, as without a __syncthreads, differs between two runs.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUDA_RUNTIME_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUDA_RUNTIME_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
// One block runs at a time.
#define __shared__ static

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT: as CUDA's
  unsigned x, y, z;
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

// Of the running fiber.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

void __syncthreads();
void __syncwarp();

namespace longhaul::compute::emulated {

// Runs `thread` for each thread of each block, with the variables above set. Crashes where a card
// would hang or misbehave: threads of one block (or warp) that wait at different places, or leave
// while others wait for them.
void Run(dim3 grid, dim3 block, const std::function<void()>& thread);

// What the lane of this fiber's warp offered, once all lanes have offered. 8 bytes at most.
void Shuffle(void* value, size_t bytes, int from_lane);
int Lane();

// How the emulated machine is: the tests' way to break it.
struct Machine {
  int devices = 1;
  int driver_version = 13000;       // 0: no driver
  size_t memory_bytes = 1ul << 30;  // of each device
  bool fails = false;               // every launch from now on
};
Machine& TheMachine();

}  // namespace longhaul::compute::emulated

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  longhaul::compute::emulated::Shuffle(&value, sizeof(T), lane);
  return value;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return __shfl_sync(mask, value, longhaul::compute::emulated::Lane() ^ lanes);
}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
};
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMalloc(void** data, size_t bytes);
cudaError_t cudaFree(void* data);
cudaError_t cudaMallocHost(void** data, size_t bytes);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_CUDA_RUNTIME_H_
