// For builds without cuDNN's headers, and for the emulation.
#include "compute/backend/cuda/fused_attention.h"

namespace longhaul::compute::cuda {

absl::StatusOr<std::unique_ptr<FusedAttention>> OpenFusedAttention(cudaStream_t) {
  return absl::UnimplementedError("this build has no cuDNN");
}

}  // namespace longhaul::compute::cuda
