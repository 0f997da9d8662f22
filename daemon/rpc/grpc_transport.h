// The dialling end of streams between workers.
#ifndef LONGHAUL_DAEMON_RPC_GRPC_TRANSPORT_H_
#define LONGHAUL_DAEMON_RPC_GRPC_TRANSPORT_H_

#include <memory>
#include <string>

#include "base/clock.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/exchange_counters.h"
#include "worker/comm/transport.h"

namespace longhaul::daemon {

// Thread-safe. Every stream has a connection of its own. With TLS the peer must hold a certificate
// for the node's name.
class GrpcTransport : public worker::Transport {
 public:
  // All references must outlive the transport and its streams.
  GrpcTransport(const Credentials& credentials, Clock& clock, ExchangeStreamCounters& counters)
      : credentials_(credentials), clock_(clock), counters_(counters) {}

  absl::StatusOr<std::unique_ptr<worker::ClientStream>> Dial(const std::string& node,
                                                             const std::string& address,
                                                             absl::Time deadline) override;

 private:
  const Credentials& credentials_;
  Clock& clock_;
  ExchangeStreamCounters& counters_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_GRPC_TRANSPORT_H_
