// The frames that have arrived and are not consumed yet.
#ifndef LONGHAUL_WORKER_COMM_INBOX_H_
#define LONGHAUL_WORKER_COMM_INBOX_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "compression/frame.h"

namespace longhaul::worker {

// A whole, checked frame.
struct ReceivedFrame {
  uint64_t sequence = 0;
  compression::FrameHeader header;
  std::string bytes;
  absl::string_view payload() const {
    return absl::string_view(bytes).substr(compression::kFrameHeaderBytes);
  }
};

// Keyed, and bounded for each kind by the link's window. Not thread-safe.
class Inbox {
 public:
  explicit Inbox(int window) : window_(window) {}

  // False if a frame with this key is here already: the frame is dropped. ResourceExhausted if it
  // is more than the window allows.
  absl::StatusOr<bool> Add(ReceivedFrame frame);
  // Null if there is none.
  std::shared_ptr<const ReceivedFrame> Find(const FrameKey& key) const;
  void Remove(const FrameKey& key);

 private:
  const int window_;
  std::map<FrameKey, std::shared_ptr<const ReceivedFrame>> frames_;
  std::map<FrameKind, int> frames_of_kind_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_INBOX_H_
