#include "daemon/device/card_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"

namespace longhaul::daemon {

CardWatch::CardWatch(std::unique_ptr<CardMonitor> monitor, Clock& clock)
    : monitor_(std::move(monitor)), clock_(clock), thread_([this] { Run(); }) {}

CardWatch::~CardWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<control::CardReadings> CardWatch::TakeReadings() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(readings_, std::nullopt);
}

absl::Status CardWatch::health() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!lost_.ok()) return OwnCopy(lost_);
  if (clock_.Now() < asked_at_ + kCardAnswerMax) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the card's driver has not answered for ",
                                             absl::FormatDuration(kCardAnswerMax),
                                             "; see dmesg, and reboot the host"));
}

void CardWatch::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    const absl::Time next = clock_.Now() + kCardReadEvery;
    asked_at_ = clock_.Now();
    lock.unlock();
    absl::StatusOr<control::CardReadings> now = monitor_->Read();
    lock.lock();
    asked_at_ = absl::InfiniteFuture();
    if (!now.ok()) {
      lost_ = now.status();
      return;
    }
    if (!first_errors_) first_errors_ = now->uncorrected_errors;
    const int64_t errors =
        first_errors_ ? now->uncorrected_errors.value_or(*first_errors_) - *first_errors_ : 0;
    readings_ = *std::move(now);
    if (errors > 0) {
      lost_ = absl::UnavailableError(
          absl::StrCat("the card's memory had ", errors, errors == 1 ? " error" : " errors",
                       " that could not be corrected since this worker started; what it computed "
                       "may be wrong"));
      return;
    }
    clock_.WaitUntil(lock, changed_, next, [this] { return stopping_; });
  }
}

}  // namespace longhaul::daemon
