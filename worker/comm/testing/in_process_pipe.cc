#include "worker/comm/testing/in_process_pipe.h"

#include <utility>

#include "base/status_copy.h"

namespace longhaul::worker {
namespace {

class ClientEnd final : public ClientStream {
 public:
  explicit ClientEnd(std::shared_ptr<InProcessPipe> pipe) : pipe_(std::move(pipe)) {}
  ~ClientEnd() override { Cancel(); }
  absl::Status Write(const StreamMessage& message) override { return pipe_->WriteMessage(message); }
  absl::StatusOr<StreamReply> Read() override { return pipe_->ReadReply(); }
  void Cancel() override { pipe_->Break(absl::CancelledError("the sender cancelled the stream")); }

 private:
  const std::shared_ptr<InProcessPipe> pipe_;
};

class ServerEnd final : public ServerStream {
 public:
  ServerEnd(std::shared_ptr<InProcessPipe> pipe, std::string peer)
      : pipe_(std::move(pipe)), peer_(std::move(peer)) {}
  absl::StatusOr<StreamMessage> Read() override { return pipe_->ReadMessage(); }
  absl::Status Write(const StreamReply& reply) override { return pipe_->WriteReply(reply); }
  void Cancel() override {
    pipe_->Break(absl::CancelledError("the receiver cancelled the stream"));
  }
  std::string peer() const override { return peer_; }

 private:
  const std::shared_ptr<InProcessPipe> pipe_;
  const std::string peer_;
};

}  // namespace

template <typename T>
absl::Status InProcessPipe::Write(std::deque<T>& queue, const T& item) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !end_.ok() || queue.size() < kQueueMax; });
  if (!end_.ok()) return OwnCopy(end_);
  if (messages_left_ && *messages_left_ == 0) {
    BreakLocked(absl::UnavailableError("the stream was broken"));
    return OwnCopy(end_);
  }
  if (messages_left_) --*messages_left_;
  queue.push_back(item);
  changed_.notify_all();
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T> InProcessPipe::Read(std::deque<T>& queue) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !end_.ok() || !queue.empty(); });
  if (queue.empty()) return OwnCopy(end_);
  T item = std::move(queue.front());
  queue.pop_front();
  changed_.notify_all();
  return item;
}

absl::Status InProcessPipe::WriteMessage(const StreamMessage& message) {
  return Write(messages_, message);
}
absl::StatusOr<StreamMessage> InProcessPipe::ReadMessage() { return Read(messages_); }
absl::Status InProcessPipe::WriteReply(const StreamReply& reply) { return Write(replies_, reply); }
absl::StatusOr<StreamReply> InProcessPipe::ReadReply() { return Read(replies_); }

void InProcessPipe::Break(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  BreakLocked(status);
}

void InProcessPipe::BreakLocked(const absl::Status& status) {
  messages_.clear();
  replies_.clear();
  if (end_.ok()) end_ = OwnCopy(status);
  changed_.notify_all();
}

void InProcessPipe::Finish(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  messages_.clear();
  if (end_.ok()) {
    end_ = status.ok() ? absl::UnavailableError("the receiver ended the stream") : OwnCopy(status);
  }
  changed_.notify_all();
}

std::unique_ptr<ClientStream> MakeInProcessClientStream(std::shared_ptr<InProcessPipe> pipe) {
  return std::make_unique<ClientEnd>(std::move(pipe));
}

std::unique_ptr<ServerStream> MakeInProcessServerStream(std::shared_ptr<InProcessPipe> pipe,
                                                        std::string peer) {
  return std::make_unique<ServerEnd>(std::move(pipe), std::move(peer));
}

}  // namespace longhaul::worker
