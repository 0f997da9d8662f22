// For builds without cuDNN's headers, and for the emulation.
#include "compute/backend/cuda/fused_attention.h"

namespace longhaul::compute::cuda {

absl::StatusOr<std::unique_ptr<FusedAttention>> OpenFusedAttention(cudaStream_t) { return nullptr; }

}  // namespace longhaul::compute::cuda
