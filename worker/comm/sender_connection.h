// One of a link's parallel connections: dials, writes chunks, reads replies, reconnects.
#ifndef LONGHAUL_WORKER_COMM_SENDER_CONNECTION_H_
#define LONGHAUL_WORKER_COMM_SENDER_CONNECTION_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "worker/comm/link_context.h"
#include "worker/comm/link_health.h"
#include "worker/comm/send_queue.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Owns a writer thread, and a reader thread for each stream. Never gives up: errors go to `health`
// and the next attempt follows after a pause (ReconnectPause) that is short again once a frame was
// consumed. All arguments outlive it.
class SenderConnection {
 public:
  SenderConnection(const LinkContext& context, int connection, Transport& transport,
                   SendQueue& queue, LinkHealth& health);
  // Stops and joins; within kDialTimeout even if the peer cannot be reached. The queue must have
  // been cancelled.
  ~SenderConnection();

  // Breaks the stream and starts no other. Does not wait.
  void Stop();

 private:
  static constexpr absl::Duration kDialTimeout = absl::Seconds(5);
  static constexpr absl::Duration kWelcomeTimeout = absl::Seconds(10);

  void Run();
  // One stream, from dialling to its end.
  absl::Status RunStream();
  absl::Status WriteMessages(ClientStream& stream);
  absl::Status ReadReplies(ClientStream& stream);
  // False if the connection was stopped.
  bool SetStream(ClientStream* stream);

  const LinkContext& context_;
  const int connection_;
  Transport& transport_;
  SendQueue& queue_;
  LinkHealth& health_;
  int failures_ = 0;  // since a frame was consumed; the reader's while it runs, else the writer's

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;           // guarded by mutex_
  ClientStream* stream_ = nullptr;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_SENDER_CONNECTION_H_
