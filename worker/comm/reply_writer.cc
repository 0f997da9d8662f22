#include "worker/comm/reply_writer.h"

#include <utility>

namespace longhaul::worker {

ReplyWriter::ReplyWriter(ServerStream& stream, Clock& clock)
    : stream_(stream), clock_(clock), thread_([this] { Run(); }) {}

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
  while (true) {
    // Ends with the stream: Stop is called when its reader has.
    changed_.wait(lock, [this] { return stopping_ || !replies_.empty(); });
    if (replies_.empty()) break;
    const StreamReply reply = std::move(replies_.front());
    replies_.pop_front();
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
