// Writes a server stream's replies, so that neither its reader nor the executor waits for the
// network, and signs of life between them.
#ifndef LONGHAUL_WORKER_COMM_REPLY_WRITER_H_
#define LONGHAUL_WORKER_COMM_REPLY_WRITER_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "worker/comm/link_context.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Owns one thread. `stream` outlives it.
class ReplyWriter {
 public:
  // Replies that may wait: a welcome with all the consumptions that can follow it, and as many
  // again. A peer that is further behind does not read; its stream ends, and the welcome of its
  // next one tells everything.
  static constexpr size_t kRepliesMax = 2 * kSequencesAheadMax;

  // Writes a SignOfLife whenever there was no reply to write for `sign_of_life_every`, but not
  // before the first reply.
  ReplyWriter(ServerStream& stream, absl::Duration sign_of_life_every, Clock& clock);
  ~ReplyWriter();

  // Never blocks. Cancels the stream if kRepliesMax wait already.
  void Post(StreamReply reply);

  // Ends the thread: after the replies posted so far, or, if the peer does not take them within a
  // second, by cancelling the stream. Idempotent.
  void Stop();

 private:
  void Run();

  ServerStream& stream_;
  const absl::Duration sign_of_life_every_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamReply> replies_;  // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  bool ended_ = false;               // guarded by mutex_
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_REPLY_WRITER_H_
