// How one direction of a link is doing: when it was heard of last, and in words for error messages.
#ifndef LONGHAUL_WORKER_COMM_LINK_HEALTH_H_
#define LONGHAUL_WORKER_COMM_LINK_HEALTH_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::worker {

// Thread-safe; its own mutex is acquired last.
class LinkHealth {
 public:
  // `silence_max` as in ExchangeOptions.
  LinkHealth(int connections, absl::Duration silence_max, Clock& clock);

  void Connected(int connection);
  // A sign of life came over the connection.
  void Heard(int connection);
  // Also for an attempt to connect that failed.
  void Broken(int connection, const absl::Status& error);

  // Waits on `changed`, with `lock` held, until `condition` holds, `deadline` has passed, or
  // nothing was heard on any connection for silence_max, counted from the wait's begin at the
  // earliest. Returns whether the condition holds.
  bool WaitWhileAlive(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                      absl::Time deadline, absl::FunctionRef<bool()> condition) const;

  // "connected since 30 s, heard 0.1 s ago"; "reconnecting since 12 s: UNAVAILABLE: ..."; "not
  // connected since 5 s" if it never was and nothing was tried; "1 of 4 connections up, ..." before
  // that where there are several.
  std::string Describe() const;

 private:
  struct State {
    bool up = false;
    absl::Time since;
    absl::Time heard = absl::InfinitePast();
    absl::Status error;
  };
  absl::Time LastHeard() const;

  const absl::Duration silence_max_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<State> connections_;  // guarded by mutex_
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_HEALTH_H_
