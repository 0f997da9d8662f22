// The receiving direction of a link.
#ifndef LONGHAUL_WORKER_COMM_LINK_RECEIVER_H_
#define LONGHAUL_WORKER_COMM_LINK_RECEIVER_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "worker/comm/frame_assembler.h"
#include "worker/comm/inbox.h"
#include "worker/comm/link_context.h"
#include "worker/comm/link_health.h"
#include "worker/comm/link_rules.h"
#include "worker/comm/reply_writer.h"
#include "worker/comm/sequence_set.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Thread-safe: Serve runs on a transport's thread for each stream, Wait and Consumed on the
// executor's. What was received and what was consumed is remembered by sequence number, so that a
// stream that breaks loses nothing: the next welcome tells it.
class LinkReceiver {
 public:
  LinkReceiver(const LinkContext& context, LinkRules rules);

  // Serves a stream whose hello was checked, until it ends. A newer stream with the same connection
  // number replaces an older one.
  absl::Status Serve(const StreamHello& hello, ServerStream& stream);

  // Waits for a frame without taking it, while the link is alive. DeadlineExceeded with no more
  // than how much of the frame has arrived, or the reason of Cancel.
  absl::StatusOr<std::shared_ptr<const ReceivedFrame>> Wait(const FrameKey& key,
                                                            absl::Time deadline);
  // OK once nothing was heard for silence_max, or the reason of Cancel.
  absl::Status WaitForSilence();
  // Drops the frame and tells the sender.
  void Consumed(const ReceivedFrame& frame);

  // Ends all waits and streams.
  void Cancel(const absl::Status& reason);
  const LinkRules& rules() const { return rules_; }
  // For messages, as LinkHealth::Describe.
  std::string Describe() const { return health_.Describe(); }

 private:
  struct Stream {
    Stream(ServerStream& stream, const LinkContext& context)
        : stream(stream), writer(stream, context.exchange.sign_of_life_every, context.clock) {}
    ServerStream& stream;
    ReplyWriter writer;
  };

  // Registers the stream and posts its welcome; the reason of Cancel if there was one.
  absl::Status Enter(int connection, Stream& stream);
  void Leave(int connection, Stream& stream, const absl::Status& status);
  absl::Status ReadMessages(int connection, ServerStream& stream);
  absl::Status Accept(ServerStream& stream, FrameChunk chunk);
  // That a frame's first chunk begins with a header that this link allows.
  absl::Status CheckFirstChunk(const FrameChunk& chunk) const;
  absl::Status CheckHeader(const compression::FrameHeader& header) const;
  absl::Status Deliver(ServerStream& stream, uint64_t sequence, std::string bytes);
  absl::Status Enqueue(ReceivedFrame frame);
  // A frame that must not be taken: counts it and breaks the link's other streams, since the
  // frame's chunks that came over them are needed again too. Returns `status` with the sender's
  // name, which `stream` is to end with.
  absl::Status Refuse(const ServerStream& stream, const absl::Status& status);
  // That something came over the connection; it is a sign of life unless frames are only corrupt.
  void Heard(int connection);
  // Told on every stream: one of them may be dead without anybody knowing yet.
  void ConsumedLocked(uint64_t sequence);

  const LinkContext& context_;
  const LinkRules rules_;
  LinkHealth health_;

  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status cancelled_;          // guarded by mutex_, as all below
  int refused_in_a_row_ = 0;        // frames, since one was whole
  std::map<int, Stream*> streams_;  // by connection
  FrameAssembler assembler_;
  SequenceSet received_;  // whole
  SequenceSet consumed_;
  Inbox inbox_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_RECEIVER_H_
