#include "tests/sim/paced_transport.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace longhaul::sim {
namespace {

using worker::ClientStream;
using worker::StreamMessage;
using worker::StreamReply;

constexpr int kChunksAtOnce = 6;

class PacedStream final : public ClientStream {
 public:
  PacedStream(std::unique_ptr<ClientStream> stream, Clock& clock)
      : stream_(std::move(stream)), clock_(clock) {}

  absl::Status Write(const StreamMessage& message) override {
    if (std::holds_alternative<worker::FrameChunk>(message)) WaitForTurn();
    return stream_->Write(message);
  }
  absl::StatusOr<StreamReply> Read() override { return stream_->Read(); }
  void Cancel() override {
    stream_->Cancel();
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

 private:
  void WaitForTurn() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (written_ == kChunksAtOnce && clock_.Now() == moment_) {
      clock_.WaitUntil(lock, changed_, moment_ + absl::Nanoseconds(1), [&] { return cancelled_; });
    }
    if (clock_.Now() != moment_) {
      moment_ = clock_.Now();
      written_ = 0;
    }
    ++written_;
  }

  const std::unique_ptr<ClientStream> stream_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;                    // guarded by mutex_, as what follows
  absl::Time moment_ = absl::InfinitePast();  // of the latest chunk
  int written_ = 0;                           // chunks at that moment
};

class PacedTransport final : public worker::Transport {
 public:
  PacedTransport(std::unique_ptr<worker::Transport> transport, Clock& clock)
      : transport_(std::move(transport)), clock_(clock) {}

  absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                     const std::string& address,
                                                     absl::Time deadline) override {
    absl::StatusOr<std::unique_ptr<ClientStream>> stream =
        transport_->Dial(node, address, deadline);
    if (!stream.ok()) return stream;
    return std::make_unique<PacedStream>(*std::move(stream), clock_);
  }

 private:
  const std::unique_ptr<worker::Transport> transport_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<worker::Transport> MakePacedTransport(std::unique_ptr<worker::Transport> transport,
                                                      Clock& clock) {
  return std::make_unique<PacedTransport>(std::move(transport), clock);
}

}  // namespace longhaul::sim
