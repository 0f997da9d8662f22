// The accepting end of streams between workers.
#ifndef LONGHAUL_DAEMON_RPC_EXCHANGE_SERVER_H_
#define LONGHAUL_DAEMON_RPC_EXCHANGE_SERVER_H_

#include "daemon/rpc/credentials.h"
#include "daemon/rpc/exchange_counters.h"
#include "longhaul/v1/exchange.grpc.pb.h"
#include "worker/comm/transport.h"

namespace longhaul::daemon {

// Hands each stream, on its own thread, to the acceptor (ExchangeRouter).
class ExchangeServer final : public v1::Exchange::Service {
 public:
  // All references must outlive the server.
  ExchangeServer(worker::StreamAcceptor& acceptor, const Credentials& credentials,
                 ExchangeStreamCounters& counters)
      : acceptor_(acceptor), credentials_(credentials), counters_(counters) {}

  grpc::Status Stream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::StreamReply, v1::StreamMessage>* stream) override;

 private:
  worker::StreamAcceptor& acceptor_;
  const Credentials& credentials_;
  ExchangeStreamCounters& counters_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_EXCHANGE_SERVER_H_
