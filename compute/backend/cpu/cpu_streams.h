// Streams of the CPU, where every call has run when it returns: nothing is ever under way.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_CPU_STREAMS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_CPU_STREAMS_H_

#include <memory>

#include "compute/backend/streams.h"

namespace longhaul::compute {

// Reached from the start.
std::unique_ptr<Mark> MakeCpuMark();

// Copies on the calling thread.
std::unique_ptr<CopyStream> MakeCpuCopyStream();

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_CPU_STREAMS_H_
