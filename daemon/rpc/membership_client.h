// The worker's end of its control stream: dials the coordinator, registers, and does so again for
// ever.
#ifndef LONGHAUL_DAEMON_RPC_MEMBERSHIP_CLIENT_H_
#define LONGHAUL_DAEMON_RPC_MEMBERSHIP_CLIENT_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "daemon/log.h"
#include "daemon/rpc/credentials.h"
#include "worker/host/control_link.h"
#include "worker/host/messages.h"

namespace longhaul::daemon {

struct MembershipClientOptions {
  std::string coordinator;       // host:port
  std::string coordinator_name;  // in its certificate, with TLS
  uint64_t jitter_seed = 0;      // so that the workers of a cluster do not return all at once
  absl::Duration answer_max = absl::Seconds(10);  // from dialling to Accepted or Refused
  absl::Duration retry_min = absl::Milliseconds(200);
  absl::Duration retry_max = absl::Seconds(10);
  absl::Duration retry_when_unwanted = absl::Seconds(30);  // Refused without `retry`
  // Messages waiting for the stream; more than a worker keeps for a coordinator that was away.
  // Overflow rule: the stream ends, and what was not acknowledged is sent again on the next.
  size_t messages_max = 1 << 17;
};

// How long to wait before the next attempt, after `failures` in a row (0: the last was accepted).
// The longest doubles from retry_min to retry_max; half of it is fixed and half drawn by
// jitter_seed and `failures`, so that a cluster that lost its coordinator does not return in step.
absl::Duration RetryPause(const MembershipClientOptions& options, int failures);

// Whom the stream serves (WorkerHost's MakeRegister and OnMessage), and what heartbeats carry: what
// the card said of itself since the last one (may be empty).
struct ControlListener {
  std::function<worker::Register()> make_register;
  std::function<void(const worker::ToWorker&)> on_message;
  std::function<std::optional<control::CardReadings>()> take_readings = nullptr;
};

// Thread-safe. Says in the log, once for each change, that the worker is not part of the cluster
// and why, and when it is again.
class MembershipClient : public worker::ControlLink {
 public:
  // `credentials`, `clock` and `log` must outlive the client.
  MembershipClient(MembershipClientOptions options, const Credentials& credentials, Clock& clock,
                   const Log& log);
  ~MembershipClient() override;  // stops

  // Starts dialling; once.
  void Start(ControlListener listener);
  // Ends the stream and waits; no message is delivered afterwards. Idempotent.
  void Stop();

  bool Send(const worker::ToCoordinator& message) override;

  // OK while the coordinator has accepted this worker, else why it has not.
  absl::Status membership() const;

 private:
  class Session;

  void Run();
  // Until the stream's end; sets `accepted` if it began.
  absl::Status RunSession(bool& accepted);
  void SetMembership(const absl::Status& status);

  const MembershipClientOptions options_;
  const Credentials& credentials_;
  Clock& clock_;
  const Log& log_;
  ControlListener listener_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;             // guarded by mutex_, as all below
  bool unwanted_ = false;             // the last refusal said not to try again
  std::shared_ptr<Session> session_;  // the one that runs
  absl::Status membership_;
  std::thread thread_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_MEMBERSHIP_CLIENT_H_
