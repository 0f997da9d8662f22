#include "worker/comm/reply_writer.h"

#include <utility>

namespace longhaul::worker {

ReplyWriter::ReplyWriter(ServerStream& stream, absl::Duration sign_of_life_every, Clock& clock)
    : stream_(stream),
      sign_of_life_every_(sign_of_life_every),
      clock_(clock),
      thread_([this] { Run(); }) {}

ReplyWriter::~ReplyWriter() { Stop(); }

void ReplyWriter::Post(StreamReply reply) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_ || ended_) return;
  if (replies_.size() < kRepliesMax) {
    replies_.push_back(std::move(reply));
  } else {
    replies_.clear();
    stopping_ = true;
    stream_.Cancel();
  }
  changed_.notify_all();
}

void ReplyWriter::Stop() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    ended = clock_.WaitUntil(lock, changed_, clock_.Now() + absl::Seconds(1),
                             [this] { return ended_; });
  }
  if (!ended) stream_.Cancel();
  thread_.join();
}

void ReplyWriter::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  absl::Time sign_of_life_at = absl::InfiniteFuture();
  while (true) {
    // Ends with the stream: Stop is called when its reader has.
    clock_.WaitUntil(lock, changed_, sign_of_life_at,
                     [this] { return stopping_ || !replies_.empty(); });
    if (replies_.empty() && stopping_) break;
    StreamReply reply = SignOfLife{};
    if (!replies_.empty()) {
      reply = std::move(replies_.front());
      replies_.pop_front();
    }
    sign_of_life_at = clock_.Now() + sign_of_life_every_;
    lock.unlock();
    const bool written = stream_.Write(reply).ok();
    lock.lock();
    if (!written) break;
  }
  ended_ = true;
  replies_.clear();
  changed_.notify_all();
}

}  // namespace longhaul::worker
