// The coordinator's end of the control streams.
#ifndef LONGHAUL_DAEMON_RPC_MEMBERSHIP_SERVER_H_
#define LONGHAUL_DAEMON_RPC_MEMBERSHIP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/core/events.h"
#include "daemon/log.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/session_table.h"
#include "longhaul/v1/membership.grpc.pb.h"

namespace longhaul::daemon {

// Where validated events go (CoordinatorHost's NewSession and Post).
struct EventSink {
  std::function<uint64_t()> new_session;
  std::function<bool(coordinator::Event)> post;
};

struct MembershipServerOptions {
  absl::Duration register_max = absl::Seconds(10);  // from opening a stream to Register
  absl::Duration refusal_grace = absl::Seconds(2);  // for a refused worker to hang up by itself
  absl::Duration write_grace = absl::Seconds(5);    // for what a stream that ends has left to write
};

// One thread for each stream reads, validates and enqueues; one more writes what the host queued.
class MembershipServer final : public v1::Membership::Service {
 public:
  // All references must outlive the server.
  MembershipServer(MembershipServerOptions options, EventSink sink, SessionTable& sessions,
                   const Credentials& credentials, Clock& clock, const Log& log);

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override;

  // Streams refused before they became sessions.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  using Stream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;
  class Writer;

  absl::StatusOr<coordinator::NodeConnected> Admit(const grpc::ServerContext& context,
                                                   const v1::WorkerMessage& first,
                                                   uint64_t session) const;
  grpc::Status Refuse(const grpc::ServerContext& context, Stream& stream,
                      const absl::Status& reason);
  absl::Status ReadUntilTheEnd(Stream& stream, uint64_t session) const;

  const MembershipServerOptions options_;
  const EventSink sink_;
  SessionTable& sessions_;
  const Credentials& credentials_;
  Clock& clock_;
  const Log& log_;
  std::atomic<uint64_t> refused_{0};
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_MEMBERSHIP_SERVER_H_
