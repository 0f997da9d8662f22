// The frames of one link on their way to the peer, kept until the peer has consumed them.
#ifndef LONGHAUL_WORKER_COMM_SEND_QUEUE_H_
#define LONGHAUL_WORKER_COMM_SEND_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "worker/comm/link_context.h"
#include "worker/comm/link_health.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Thread-safe: the executor puts frames in, the link's connections take chunks out. Every chunk is
// pending, or was last given to one connection; when that connection breaks it is pending again
// unless the peer says that the frame has arrived. Memory is bounded by the windows of the kinds.
class SendQueue {
 public:
  // Waits for the peer last while `health` says that the link is alive. Both outlive the queue.
  SendQueue(const LinkContext& context, const LinkHealth& health);

  // Waits for room in the window of `kind` and takes it. A bare DeadlineExceeded, or the reason of
  // Cancel.
  absl::Status Reserve(FrameKind kind, absl::Time deadline);
  // Queues an encoded frame for which room was reserved.
  void Push(const FrameKey& key, std::string bytes);
  // An empty or used buffer to encode the next frame into.
  std::string TakeBuffer();

  // Waits until every frame was consumed. A bare DeadlineExceeded, or the reason of Cancel.
  absl::Status WaitEmpty(absl::Time deadline);
  // Which frames wait: "3 frames, the first the activation of step 17 micro-batch 3"; empty if
  // none.
  std::string DescribeUnconsumed() const;

  // A connection's life: Dialling, Welcomed, Broken, and again.
  void Dialling(int connection);
  // FailedPrecondition if the peer cannot be the one that this queue has talked to before.
  absl::Status Welcomed(int connection, const StreamWelcome& welcome);
  absl::Status Consumed(uint64_t sequence);
  void Broken(int connection);
  // Until the connection is welcomed or broken. Whether it is welcomed.
  bool WaitWelcomed(int connection, absl::Time deadline);
  bool WaitBroken(int connection, absl::Time deadline);
  // Waits for something to write: a chunk, or a SignOfLife at `sign_of_life_at`. None once the
  // connection is broken or the queue cancelled.
  std::optional<StreamMessage> NextMessage(int connection, absl::Time sign_of_life_at);

  // Every present and future wait ends.
  void Cancel(const absl::Status& reason);

 private:
  enum class Phase { kBroken, kDialling, kWelcomed };
  static constexpr int kNeverGiven = -1;
  static constexpr int kLost = -2;
  struct Frame {
    FrameKey key;
    std::string bytes;
    std::vector<int> given_to;  // by chunk: a connection, or one of the two above
    bool counted_as_resent = false;
    int readers = 0;  // connections that copy from it right now
  };
  using ChunkId = std::pair<uint64_t, uint64_t>;  // sequence, chunk within the frame

  // The first sequence number that the peer has not said to have consumed.
  uint64_t OldestLocked() const;
  void ReleaseLocked(uint64_t sequence);

  const int window_;
  const uint64_t chunk_bytes_;
  Clock& clock_;
  Counters& counters_;
  const LinkHealth& health_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status cancelled_;  // guarded by mutex_, as all below
  std::map<uint64_t, std::shared_ptr<Frame>> unconsumed_;
  std::set<ChunkId> pending_;
  std::map<FrameKind, int> taken_;  // of each window
  int reserved_ = 0;                // taken but not pushed
  uint64_t next_sequence_ = 0;
  std::vector<Phase> phases_;
  std::vector<bool> was_welcomed_;
  std::vector<uint64_t> oldest_when_dialled_;  // by connection
  std::vector<std::string> spare_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_SEND_QUEUE_H_
