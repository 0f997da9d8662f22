// What is known of the cards of this machine before one is opened, and of the build for them. Every
// build has this: one without CUDA says so (cuda_absent.cc).
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_DEVICE_FACTS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_DEVICE_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace longhaul::compute {

struct CudaDeviceFacts {
  std::string name;                 // "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;         // its compute capability
  std::string uuid;                 // "GPU-" and 32 hexadecimal digits in five groups
  std::string pci_bus_id;           // "0000:17:00.0"
  int64_t memory_bytes = 0;         // of the whole card
  std::string driver_cuda_version;  // the newest that the driver supports: "13.0"
};

struct CudaMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// Chooses for this process what CUDA and its libraries read in the environment, where that says
// nothing: cards are numbered as nvidia-smi does. Before the process has threads.
void SetCudaEnvironment();

// "CUDA 13.0 for compute capability 8.0, 9.0 and later", or "no CUDA".
std::string DescribeCudaBuild();

// Of card number `device`, without taking anything of it. FailedPrecondition, with what to do: no
// driver or one too old, no such card (with how many there are), a card that this build has no code
// for, a build without CUDA.
absl::StatusOr<CudaDeviceFacts> ReadCudaDevice(int device);

// Makes this process's context on the card if there is none, and counts what that takes as used.
absl::StatusOr<CudaMemory> ReadCudaMemory(int device);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_DEVICE_FACTS_H_
