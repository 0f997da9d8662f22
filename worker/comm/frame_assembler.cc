#include "worker/comm/frame_assembler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compression/frame.h"

namespace longhaul::worker {

absl::Status FrameAssembler::Check(const FrameChunk& chunk) const {
  const std::string name = absl::StrCat("frame ", chunk.sequence, ": ");
  if (chunk.frame_bytes < compression::kFrameHeaderBytes ||
      chunk.frame_bytes > limits_.frame_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "of ", chunk.frame_bytes, " bytes, the plan allows ",
                     compression::kFrameHeaderBytes, " to ", limits_.frame_bytes_max));
  }
  if (chunk.offset >= chunk.frame_bytes || chunk.offset % limits_.chunk_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, "chunk at ", chunk.offset, " of ",
                                                   chunk.frame_bytes, " bytes, in chunks of ",
                                                   limits_.chunk_bytes));
  }
  const uint64_t expected = std::min(limits_.chunk_bytes, chunk.frame_bytes - chunk.offset);
  if (chunk.bytes.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(name, "chunk of ", chunk.bytes.size(),
                                                   " bytes at ", chunk.offset, ", ", expected,
                                                   " expected"));
  }
  const auto partial = partial_.find(chunk.sequence);
  if (partial != partial_.end() && partial->second.bytes.size() != chunk.frame_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, "first of ", partial->second.bytes.size(),
                                                   ", now of ", chunk.frame_bytes, " bytes"));
  }
  const bool whole = chunk.bytes.size() == chunk.frame_bytes;
  if (partial == partial_.end() && !whole && partial_.size() >= limits_.partial_frames_max) {
    return absl::ResourceExhaustedError(absl::StrCat(name, partial_.size(),
                                                     " other frames are incomplete, and the plan "
                                                     "allows no more"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FrameAssembler::Result> FrameAssembler::Add(FrameChunk chunk) {
  LH_RETURN_IF_ERROR(Check(chunk));
  Result result;
  if (chunk.bytes.size() == chunk.frame_bytes) {
    result.frame = std::move(chunk.bytes);
    return result;
  }
  Partial& partial = partial_[chunk.sequence];
  if (partial.bytes.empty()) {
    partial.bytes.resize(chunk.frame_bytes);
    partial.missing = (chunk.frame_bytes - 1) / limits_.chunk_bytes + 1;
    partial.present.resize(partial.missing);
  }
  const size_t index = chunk.offset / limits_.chunk_bytes;
  if (partial.present[index]) {
    result.duplicate = true;
    return result;
  }
  partial.present[index] = true;
  partial.arrived += chunk.bytes.size();
  partial.bytes.replace(chunk.offset, chunk.bytes.size(), chunk.bytes);
  if (--partial.missing == 0) {
    result.frame = std::move(partial.bytes);
    partial_.erase(chunk.sequence);
  }
  return result;
}

std::optional<FrameAssembler::Progress> FrameAssembler::Find(const FrameKey& key) const {
  for (const auto& [sequence, partial] : partial_) {
    if (!partial.present[0]) continue;
    const auto header = compression::ParseFrameHeader(partial.bytes);
    if (header.ok() && header->key == key) return Progress{partial.arrived, partial.bytes.size()};
  }
  return std::nullopt;
}

}  // namespace longhaul::worker
