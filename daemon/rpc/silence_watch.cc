#include "daemon/rpc/silence_watch.h"

#include <utility>

namespace longhaul::daemon {

SilenceWatch::SilenceWatch(std::function<void()> cancel, absl::Duration silence_max, Clock& clock)
    : cancel_(std::move(cancel)),
      silence_max_(silence_max),
      clock_(clock),
      moved_(clock.Now()),
      thread_([this] { Run(); }) {}

SilenceWatch::~SilenceWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SilenceWatch::Moved() {
  std::lock_guard<std::mutex> lock(mutex_);
  moved_ = clock_.Now();
}

bool SilenceWatch::cancelled() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

void SilenceWatch::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_ && clock_.Now() < moved_ + silence_max_) {
    clock_.WaitUntil(lock, changed_, moved_ + silence_max_, [this] { return ending_; });
  }
  if (ending_) return;
  cancelled_ = true;
  cancel_();
}

}  // namespace longhaul::daemon
