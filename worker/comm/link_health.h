// How one direction of a link is doing, in words for error messages.
#ifndef LONGHAUL_WORKER_COMM_LINK_HEALTH_H_
#define LONGHAUL_WORKER_COMM_LINK_HEALTH_H_

#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::worker {

// Thread-safe.
class LinkHealth {
 public:
  LinkHealth(int connections, Clock& clock);

  void Connected(int connection);
  // Also for an attempt to connect that failed.
  void Broken(int connection, const absl::Status& error);

  // "connected since 3 s"; "reconnecting since 12 s: UNAVAILABLE: ..."; "not connected since 5 s"
  // if it never was and nothing was tried; "1 of 4 connections up, ..." before that where there are
  // several.
  std::string Describe() const;

 private:
  struct State {
    bool up = false;
    absl::Time since;
    absl::Status error;
  };
  Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<State> connections_;  // guarded by mutex_
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_HEALTH_H_
