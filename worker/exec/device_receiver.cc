#include "worker/exec/device_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "worker/comm/link_context.h"

namespace longhaul::worker {

using compute::DeviceSpan;
using compute::Mark;

absl::StatusOr<std::unique_ptr<DeviceReceiver>> DeviceReceiver::Make(compute::Backend& backend,
                                                                     Exchange& exchange,
                                                                     const DeviceLinks& links,
                                                                     Clock& clock) {
  std::unique_ptr<DeviceReceiver> made(new DeviceReceiver(backend, exchange, links, clock));
  LH_ASSIGN_OR_RETURN(made->copies_, backend.MakeCopyStream());
  LH_ASSIGN_OR_RETURN(std::vector<StagingBuffer> staging, links.AllocateStaging());
  made->slots_ = std::vector<Slot>(staging.size());
  for (size_t i = 0; i < staging.size(); ++i) {
    static_cast<StagingBuffer&>(made->slots_[i]) = std::move(staging[i]);
  }
  const size_t bytes = links.all().size() * sizeof(uint32_t);
  LH_ASSIGN_OR_RETURN(made->damaged_, backend.Allocate(bytes));
  LH_ASSIGN_OR_RETURN(made->damaged_read_, backend.AllocatePinned(bytes));
  return made;
}

absl::StatusOr<DeviceReceiver::Slot*> DeviceReceiver::TakeSlot(const FrameKey& key,
                                                               absl::Time deadline) {
  const size_t begin = next_;
  while (slots_[next_].tied != IsTied(key.kind)) {
    next_ = (next_ + 1) % slots_.size();
    LH_CHECK(next_ != begin, "no buffer for the ", FrameName(key));
  }
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  if (slot.copied != nullptr) {
    LH_RETURN_IF_ERROR(compute::WaitFor(
        *slot.copied, clock_, DeviceDeadline(clock_, deadline),
        absl::StrCat("the copy to the device before that of the ", FrameName(key))));
  }
  return &slot;
}

absl::Status DeviceReceiver::Receive(const DeviceLink& link, const FrameKey& key,
                                     const DeviceSpan& values, absl::Time deadline) {
  LH_CHECK(!slots_.empty(), "a stage without neighbours receives the ", FrameName(key));
  LH_ASSIGN_OR_RETURN(Slot* const slot, TakeSlot(key, deadline));
  LH_RETURN_IF_ERROR(Fill(*slot, link, key, static_cast<uint64_t>(values.elements), deadline));
  return slot->tied ? QueueTied(*slot, values) : QueueDecoding(*slot, link, values);
}

absl::Status DeviceReceiver::Fill(Slot& slot, const DeviceLink& link, const FrameKey& key,
                                  uint64_t elements, absl::Time deadline) {
  const int peer = link.options.peer_group;
  if (slot.tied || link.host_encodes) {
    LH_CHECK(elements * sizeof(float) <= slot.pinned->bytes(), elements, " floats");
    float* const floats = static_cast<float*>(slot.pinned->data());
    return exchange_.Receive(peer, key, absl::MakeSpan(floats, elements), deadline);
  }
  const size_t size = link.codec.EncodedSize(static_cast<int64_t>(elements));
  LH_CHECK(size <= slot.pinned->bytes(), size, " bytes for a buffer of ", slot.pinned->bytes());
  const auto take = [&](absl::Span<const uint8_t> bytes) {
    if (bytes.size() != size) {
      return absl::DataLossError(absl::StrCat("codec ", link.options.codec, ": ", bytes.size(),
                                              " bytes for ", elements, " values, expected ", size));
    }
    if (!bytes.empty()) std::memcpy(slot.pinned->data(), bytes.data(), size);
    return absl::OkStatus();
  };
  return exchange_.ReceiveEncoded(peer, key, elements, take, deadline);
}

absl::Status DeviceReceiver::QueueTied(Slot& slot, const DeviceSpan& values) {
  LH_CHECK(values.element == compute::Element::kFloat32, "tied tensors are floats");
  // The operators before may still use what the values replace.
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<Mark> used, backend_.MarkNow());
  LH_RETURN_IF_ERROR(copies_->After(*used));
  LH_RETURN_IF_ERROR(
      copies_->ToDevice(values.data, slot.pinned->data(), static_cast<size_t>(values.bytes())));
  LH_ASSIGN_OR_RETURN(slot.copied, copies_->MarkNow());
  return backend_.After(*slot.copied);
}

absl::Status DeviceReceiver::QueueDecoding(Slot& slot, const DeviceLink& link,
                                           const DeviceSpan& values) {
  if (slot.decoded != nullptr) LH_RETURN_IF_ERROR(copies_->After(*slot.decoded));
  LH_RETURN_IF_ERROR(copies_->ToDevice(slot.device->data(), slot.pinned->data(),
                                       link.codec.EncodedSize(values.elements)));
  LH_ASSIGN_OR_RETURN(slot.copied, copies_->MarkNow());
  LH_RETURN_IF_ERROR(backend_.After(*slot.copied));
  uint32_t* const damaged = static_cast<uint32_t*>(damaged_->data()) + link.index;
  LH_RETURN_IF_ERROR(link.codec.Decode(slot.device->data(), values, damaged));
  LH_ASSIGN_OR_RETURN(slot.decoded, backend_.MarkNow());
  return absl::OkStatus();
}

absl::Status DeviceReceiver::PrepareCheck() {
  return backend_.CopyToHost(damaged_read_->data(), damaged_->data(), damaged_->bytes());
}

absl::Status DeviceReceiver::Check() const {
  const uint32_t* const damaged = static_cast<const uint32_t*>(damaged_read_->data());
  for (const auto& [peer, link] : links_.all()) {
    if (damaged[link.index] == 0) continue;
    return absl::DataLossError(absl::StrCat("codec ", link.codec.codec().name(), ": a tensor from ",
                                            PeerName(link.options),
                                            " has bytes that are never written"));
  }
  return absl::OkStatus();
}

}  // namespace longhaul::worker
