#include "absl/synchronization/mutex.h"
#include "base/clock.h"

void Wait() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  usleep(1);
  sleep(1);
  absl::SleepFor(absl::Seconds(1));
  const auto now = std::chrono::system_clock::now();
  const absl::Time later = absl::Now();
  absl::Mutex mutex;
}
