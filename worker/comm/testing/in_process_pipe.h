// Both ends of one in-process stream.
#ifndef LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_PIPE_H_
#define LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_PIPE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// Two bounded queues of messages and one end. Thread-safe; shared by the client's end, the server's
// end and the network. Waits are bounded by the pipe's life, as the streams' contract says, so
// there is no deadline and no clock in them.
class InProcessPipe {
 public:
  // Breaks when `messages_left`, if given, have been written by both sides together.
  explicit InProcessPipe(std::optional<int> messages_left) : messages_left_(messages_left) {}

  absl::Status WriteMessage(const StreamMessage& message);
  absl::StatusOr<StreamMessage> ReadMessage();
  absl::Status WriteReply(const StreamReply& reply);
  absl::StatusOr<StreamReply> ReadReply();

  // The stream breaks: what is under way is lost, and everybody gets `status` from now on.
  void Break(const absl::Status& status);
  // The server ended the stream: the client reads the replies under way, then `status`.
  void Finish(const absl::Status& status);

 private:
  static constexpr size_t kQueueMax = 16;

  void BreakLocked(const absl::Status& status);
  template <typename T>
  absl::Status Write(std::deque<T>& queue, const T& item);
  template <typename T>
  absl::StatusOr<T> Read(std::deque<T>& queue);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamMessage> messages_;  // guarded by mutex_
  std::deque<StreamReply> replies_;     // guarded by mutex_
  absl::Status end_;                    // guarded by mutex_; OK while open; the first one stays
  std::optional<int> messages_left_;    // guarded by mutex_
};

// The dialling side; cancels when destroyed.
std::unique_ptr<ClientStream> MakeInProcessClientStream(std::shared_ptr<InProcessPipe> pipe);
std::unique_ptr<ServerStream> MakeInProcessServerStream(std::shared_ptr<InProcessPipe> pipe,
                                                        std::string peer);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_PIPE_H_
