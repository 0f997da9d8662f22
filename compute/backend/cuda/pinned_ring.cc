#include "compute/backend/cuda/pinned_ring.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_buffers.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {

absl::StatusOr<std::unique_ptr<PinnedRing>> PinnedRing::Make(CudaDevice& device, EventPool& events,
                                                             cudaStream_t stream) {
  auto ring = std::unique_ptr<PinnedRing>(new PinnedRing(device, events, stream));
  LH_ASSIGN_OR_RETURN(ring->memory_, AllocatePinned(device, kSegments * kSegmentBytes));
  return ring;
}

absl::Status PinnedRing::Upload(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  while (bytes > 0) {
    if (filled_ == kSegmentBytes) LH_RETURN_IF_ERROR(Turn());
    const size_t piece = std::min(bytes, kSegmentBytes - filled_);
    char* const pinned = static_cast<char*>(memory_->data()) + segment_ * kSegmentBytes + filled_;
    std::memcpy(pinned, source, piece);
    device_.Use();
    LH_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(target, pinned, piece, cudaMemcpyHostToDevice, stream_),
                   absl::StrCat("copy to ", device_.name())));
    filled_ += piece;
    target += piece;
    source += piece;
    bytes -= piece;
  }
  return absl::OkStatus();
}

absl::Status PinnedRing::Turn() {
  LH_ASSIGN_OR_RETURN(read_[segment_], MarkStream(device_, events_, stream_));
  const size_t next = (segment_ + 1) % kSegments;
  if (read_[next] != nullptr) {
    LH_RETURN_IF_ERROR(device_.WaitFor(*read_[next], "uploads before this one"));
    read_[next] = nullptr;
  }
  segment_ = next;
  filled_ = 0;
  return absl::OkStatus();
}

}  // namespace longhaul::compute
