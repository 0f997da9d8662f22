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
  made->buffers_ = std::vector<InBuffer>(staging.size());
  for (size_t i = 0; i < staging.size(); ++i) {
    static_cast<StagingBuffer&>(made->buffers_[i]) = std::move(staging[i]);
  }
  const size_t bytes = links.all().size() * sizeof(uint32_t);
  LH_ASSIGN_OR_RETURN(made->damaged_, backend.Allocate(bytes));
  LH_ASSIGN_OR_RETURN(made->damaged_read_, backend.AllocatePinned(bytes));
  return made;
}

absl::StatusOr<DeviceReceiver::InBuffer*> DeviceReceiver::TakeBuffer(const FrameKey& key,
                                                                     absl::Time deadline) {
  const size_t begin = next_;
  while (buffers_[next_].tied != IsTied(key.kind)) {
    next_ = (next_ + 1) % buffers_.size();
    LH_CHECK(next_ != begin, "no buffer for the ", FrameName(key));
  }
  InBuffer& buffer = buffers_[next_];
  next_ = (next_ + 1) % buffers_.size();
  if (buffer.copied != nullptr) {
    LH_RETURN_IF_ERROR(compute::WaitFor(
        *buffer.copied, clock_, DeviceDeadline(clock_, deadline),
        absl::StrCat("the copy to the device before that of the ", FrameName(key))));
  }
  return &buffer;
}

absl::Status DeviceReceiver::Receive(const DeviceLink& link, const FrameKey& key,
                                     const DeviceSpan& values, absl::Time deadline) {
  LH_CHECK(!buffers_.empty(), "a stage without neighbours receives the ", FrameName(key));
  LH_ASSIGN_OR_RETURN(InBuffer* const buffer, TakeBuffer(key, deadline));
  LH_RETURN_IF_ERROR(Fill(*buffer, link, key, static_cast<uint64_t>(values.elements), deadline));
  return buffer->tied ? QueueTied(*buffer, values) : QueueDecoding(*buffer, link, values);
}

absl::Status DeviceReceiver::Fill(InBuffer& buffer, const DeviceLink& link, const FrameKey& key,
                                  uint64_t elements, absl::Time deadline) {
  const int peer = link.options.peer_group;
  if (buffer.tied || link.host_encodes) {
    LH_CHECK(elements * sizeof(float) <= buffer.pinned->bytes(), elements, " floats");
    float* const floats = static_cast<float*>(buffer.pinned->data());
    return exchange_.Receive(peer, key, absl::MakeSpan(floats, elements), deadline);
  }
  const size_t size = link.codec.EncodedSize(static_cast<int64_t>(elements));
  LH_CHECK(size <= buffer.pinned->bytes(), size, " bytes for a buffer of ", buffer.pinned->bytes());
  const auto take = [&](absl::Span<const uint8_t> bytes) {
    if (bytes.size() != size) {
      return absl::DataLossError(absl::StrCat("codec ", link.options.codec, ": ", bytes.size(),
                                              " bytes for ", elements, " values, expected ", size));
    }
    if (!bytes.empty()) std::memcpy(buffer.pinned->data(), bytes.data(), size);
    return absl::OkStatus();
  };
  return exchange_.ReceiveEncoded(peer, key, elements, take, deadline);
}

absl::Status DeviceReceiver::QueueTied(InBuffer& buffer, const DeviceSpan& values) {
  LH_CHECK(values.element == compute::Element::kFloat32, "tied tensors are floats");
  // The operators before may still use what the values replace.
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<Mark> used, backend_.MarkNow());
  LH_RETURN_IF_ERROR(copies_->After(*used));
  LH_RETURN_IF_ERROR(
      copies_->ToDevice(values.data, buffer.pinned->data(), static_cast<size_t>(values.bytes())));
  LH_ASSIGN_OR_RETURN(buffer.copied, copies_->MarkNow());
  return backend_.After(*buffer.copied);
}

absl::Status DeviceReceiver::QueueDecoding(InBuffer& buffer, const DeviceLink& link,
                                           const DeviceSpan& values) {
  if (buffer.decoded != nullptr) LH_RETURN_IF_ERROR(copies_->After(*buffer.decoded));
  LH_RETURN_IF_ERROR(copies_->ToDevice(buffer.device->data(), buffer.pinned->data(),
                                       link.codec.EncodedSize(values.elements)));
  LH_ASSIGN_OR_RETURN(buffer.copied, copies_->MarkNow());
  LH_RETURN_IF_ERROR(backend_.After(*buffer.copied));
  uint32_t* const damaged = static_cast<uint32_t*>(damaged_->data()) + link.index;
  LH_RETURN_IF_ERROR(link.codec.Decode(buffer.device->data(), values, damaged));
  LH_ASSIGN_OR_RETURN(buffer.decoded, backend_.MarkNow());
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
