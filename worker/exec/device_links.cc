#include "worker/exec/device_links.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compression/codec.h"

namespace longhaul::worker {
namespace {

using compute::DeviceCodec;

// A buffer is free again as soon as it has crossed, so that more of them would only let the host
// run ahead of the device further.
constexpr int kBuffersMax = 4;

}  // namespace

absl::StatusOr<DeviceLinks> DeviceLinks::Make(compute::Backend& backend,
                                              absl::Span<const LinkOptions> links) {
  LH_ASSIGN_OR_RETURN(const compression::Codec* const none,
                      compression::FindCodec(absl::string_view("none")));
  DeviceLinks made(backend);
  for (const LinkOptions& link : links) {
    LH_ASSIGN_OR_RETURN(const compression::Codec* const codec,
                        compression::FindCodec(absl::string_view(link.codec)));
    const std::optional<DeviceCodec> own = DeviceCodec::Find(backend, *codec);
    const DeviceCodec on_device = own ? *own : *DeviceCodec::Find(backend, *none);
    if (link.tensor_elements > 0) {
      made.buffers_ = std::min(made.buffers_ + link.window, kBuffersMax);
      made.tensor_bytes_max_ =
          std::max(made.tensor_bytes_max_,
                   on_device.EncodedSize(static_cast<int64_t>(link.tensor_elements)));
    }
    made.tied_bytes_max_ =
        std::max<size_t>(made.tied_bytes_max_, link.tied_elements * sizeof(float));
    made.links_.emplace(link.peer_group,
                        DeviceLink{link, on_device, !own.has_value(), made.links_.size()});
  }
  return made;
}

absl::StatusOr<const DeviceLink*> DeviceLinks::Find(int peer_group) const {
  const auto link = links_.find(peer_group);
  if (link != links_.end()) return &link->second;
  return absl::InvalidArgumentError(absl::StrCat("no link with device group ", peer_group));
}

absl::StatusOr<std::vector<StagingBuffer>> DeviceLinks::AllocateStaging() const {
  std::vector<StagingBuffer> staging(buffers_);
  for (StagingBuffer& buffer : staging) {
    LH_ASSIGN_OR_RETURN(buffer.device, backend_->Allocate(tensor_bytes_max_));
    LH_ASSIGN_OR_RETURN(buffer.pinned, backend_->AllocatePinned(tensor_bytes_max_));
  }
  if (tied_bytes_max_ > 0) {
    StagingBuffer& buffer = staging.emplace_back();
    buffer.tied = true;
    LH_ASSIGN_OR_RETURN(buffer.pinned, backend_->AllocatePinned(tied_bytes_max_));
  }
  return staging;
}

}  // namespace longhaul::worker
