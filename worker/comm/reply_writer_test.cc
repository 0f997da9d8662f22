#include "worker/comm/reply_writer.h"

#include <gtest/gtest.h>

namespace longhaul::worker {
namespace {

// A peer that does not read: writes return only when the stream is cancelled.
class DeafStream : public ServerStream {
 public:
  absl::StatusOr<StreamMessage> Read() override { return absl::CancelledError("no messages"); }
  absl::Status Write(const StreamReply&) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return cancelled_; });
    return absl::CancelledError("the stream was cancelled");
  }
  void Cancel() override {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  std::string peer() const override { return "deaf"; }
  bool cancelled() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;  // guarded by mutex_
};

TEST(ReplyWriter, EndsTheStreamOfAPeerThatDoesNotRead) {
  DeafStream stream;
  ReplyWriter writer(stream, absl::InfiniteDuration(), RealClock());
  for (uint64_t i = 0; i < ReplyWriter::kRepliesMax; ++i) writer.Post(FrameConsumed{i});
  EXPECT_FALSE(stream.cancelled());
  // One may be with the writer's thread.
  writer.Post(FrameConsumed{0});
  writer.Post(FrameConsumed{0});
  EXPECT_TRUE(stream.cancelled());
  writer.Post(FrameConsumed{0});
  writer.Stop();
}

}  // namespace
}  // namespace longhaul::worker
