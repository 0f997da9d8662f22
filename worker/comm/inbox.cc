#include "worker/comm/inbox.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace longhaul::worker {

absl::StatusOr<bool> Inbox::Add(ReceivedFrame frame) {
  const FrameKey key = frame.header.key;
  if (frames_.count(key) > 0) return false;
  int& of_kind = frames_of_kind_[key.kind];
  if (of_kind >= window_) {
    return absl::ResourceExhaustedError(absl::StrCat(ToString(key), ": ", of_kind,
                                                     " frames of this kind wait already, and the ",
                                                     "window is ", window_));
  }
  ++of_kind;
  frames_[key] = std::make_shared<const ReceivedFrame>(std::move(frame));
  return true;
}

std::shared_ptr<const ReceivedFrame> Inbox::Find(const FrameKey& key) const {
  const auto frame = frames_.find(key);
  return frame == frames_.end() ? nullptr : frame->second;
}

void Inbox::Remove(const FrameKey& key) {
  if (frames_.erase(key) > 0) --frames_of_kind_[key.kind];
}

}  // namespace longhaul::worker
