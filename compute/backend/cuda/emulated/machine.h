// The emulated machine as tests see it, without CUDA's names: how to break it, and what was made.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_MACHINE_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace longhaul::compute::emulated {

// Set while no other thread uses the runtime, and whole again at the end of a test.
struct Machine {
  int devices = 1;
  int driver_version = 13000;       // the CUDA that it supports; 0: no driver
  int capability = 90;              // 9.0
  size_t memory_bytes = 1ul << 30;  // of each device
  size_t pinned_bytes = 1ul << 30;  // the most that one call pins
  bool fails = false;               // every kernel from now on
  int lost = 0;                     // the error (a cudaError_t) of every call from now on
  bool hangs = false;               // no stream runs anything from now on
  std::vector<const void*> hung;    // nor do these, of type cudaStream_t
  std::string name = "";            // from which the devices' UUIDs are made
  std::string breaks = "";          // a path: once something lies there, every kernel fails
};
Machine& TheMachine();

// What was made since the program started.
struct Counts {
  int64_t allocations = 0;  // of device memory
  int64_t pinned_allocations = 0;
  int64_t streams = 0;
  int64_t events = 0;
  int64_t graphs = 0;  // that can be launched
  int64_t launches = 0;
};
Counts TheCounts();

}  // namespace longhaul::compute::emulated

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_MACHINE_H_
