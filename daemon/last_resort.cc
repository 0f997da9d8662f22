#include "daemon/last_resort.h"

#include <cstdlib>

namespace longhaul::daemon {

LastResort::LastResort(int exit_code, absl::Duration duration_max, Clock& clock, const Log& log)
    : thread_([this, exit_code, duration_max, &clock, &log] {
        std::unique_lock<std::mutex> lock(mutex_);
        if (clock.WaitUntil(lock, changed_, clock.Now() + duration_max,
                            [this] { return not_needed_; })) {
          return;
        }
        log.Error("could not end in order; ending at once",
                  {{"after", absl::FormatDuration(duration_max)}});
        std::_Exit(exit_code);
      }) {}

LastResort::~LastResort() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    not_needed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace longhaul::daemon
