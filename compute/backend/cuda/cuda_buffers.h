// Memory on a card, and pinned memory of the host.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BUFFERS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BUFFERS_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/cuda_device.h"

namespace longhaul::compute {

// ResourceExhausted, with what there is, if it does not fit. Not zeroed. Freeing waits for the
// device, which must outlive the buffer.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateOnDevice(CudaDevice& device, size_t bytes);

// Zeroed. ResourceExhausted if it does not fit. Freeing waits as above.
absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(CudaDevice& device, size_t bytes);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_BUFFERS_H_
