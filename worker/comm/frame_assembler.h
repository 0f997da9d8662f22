// Puts the chunks of frames together.
#ifndef LONGHAUL_WORKER_COMM_FRAME_ASSEMBLER_H_
#define LONGHAUL_WORKER_COMM_FRAME_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

struct FrameAssemblerLimits {
  uint64_t frame_bytes_max = 0;
  size_t partial_frames_max = 0;
  uint64_t chunk_bytes = 0;  // of every chunk but a frame's last
};

// Chunks of several frames may come interleaved, in any order and repeatedly. Memory is bounded by
// the limits, and a chunk is checked against them before any is taken. Not thread-safe.
class FrameAssembler {
 public:
  explicit FrameAssembler(const FrameAssemblerLimits& limits) : limits_(limits) {}

  struct Result {
    std::optional<std::string> frame;  // the whole frame, with its last missing chunk
    bool duplicate = false;            // the chunk was already here
  };
  // InvalidArgument or ResourceExhausted for a chunk that no plan allows; it then leaves no trace.
  absl::StatusOr<Result> Add(FrameChunk chunk);

  struct Progress {
    uint64_t arrived = 0;  // bytes
    uint64_t frame_bytes = 0;
  };
  // Of the incomplete frame with this key; none if its first chunk, which has the key, is missing.
  std::optional<Progress> Find(const FrameKey& key) const;

  // Drops what is here of a frame.
  void Forget(uint64_t sequence) { partial_.erase(sequence); }

 private:
  struct Partial {
    std::string bytes;
    std::vector<bool> present;  // by chunk
    size_t missing = 0;
    uint64_t arrived = 0;  // bytes
  };
  absl::Status Check(const FrameChunk& chunk) const;

  const FrameAssemblerLimits limits_;
  std::map<uint64_t, Partial> partial_;  // by sequence number
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_FRAME_ASSEMBLER_H_
