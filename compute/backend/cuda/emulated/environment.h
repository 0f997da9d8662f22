// The emulated machine of a whole process, as its environment says: the tests' way to run daemons
// with cards, and with cards that fail.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_ENVIRONMENT_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_ENVIRONMENT_H_

#include "compute/backend/cuda/emulated/machine.h"

namespace longhaul::compute::emulated {

// Machine's defaults but for what these say:
// LONGHAUL_EMULATED_DEVICES, _DRIVER (the CUDA that it supports: 13000; 0: no driver),
// _CAPABILITY (90), _MEMORY_MEBIBYTES (of each device), _NAME (of the machine, from which the
// devices' UUIDs are made: equal names are one machine), _BREAKS (a path: kernels work until
// something lies there).
Machine MachineFromEnvironment();

// Whether kernels fail now.
bool IsBroken(const Machine& machine);

}  // namespace longhaul::compute::emulated

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_ENVIRONMENT_H_
