// Looks after a card while its worker lives.
#ifndef LONGHAUL_DAEMON_DEVICE_CARD_WATCH_H_
#define LONGHAUL_DAEMON_DEVICE_CARD_WATCH_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "control/device.h"
#include "daemon/device/nvml.h"

namespace longhaul::daemon {

inline constexpr absl::Duration kCardReadEvery = absl::Seconds(5);
// A driver that does not answer for this long is taken to have lost the card.
inline constexpr absl::Duration kCardAnswerMax = absl::Minutes(1);

// Owns a thread that reads the card at once and then every kCardReadEvery, until the card is lost.
// Thread-safe. A destructor that finds the driver hanging waits for it.
class CardWatch {
 public:
  // `clock` must outlive it.
  CardWatch(std::unique_ptr<CardMonitor> monitor, Clock& clock);
  ~CardWatch();

  // The newest, once; none: already taken, or not read yet.
  std::optional<control::CardReadings> TakeReadings();

  // OK, or why the card is of no more use: it is lost, it had memory errors that could not be
  // corrected since the watch began, or its driver hangs.
  absl::Status health() const;

 private:
  void Run();

  const std::unique_ptr<CardMonitor> monitor_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;                         // guarded by mutex_, as all below
  absl::Time asked_at_ = absl::InfiniteFuture();  // while the driver has not answered
  std::optional<int64_t> first_errors_;
  std::optional<control::CardReadings> readings_;
  absl::Status lost_;
  std::thread thread_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_DEVICE_CARD_WATCH_H_
