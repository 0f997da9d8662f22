// Channels and listening servers with the settings that both ends of a connection must agree on.
#ifndef LONGHAUL_DAEMON_RPC_ENDPOINT_H_
#define LONGHAUL_DAEMON_RPC_ENDPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/rpc/credentials.h"
#include "daemon/values.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"

namespace longhaul::daemon {

// Longest message either side accepts: an assignment with the manifest of a large model.
inline constexpr int kMessageBytesMax = 8 << 20;

// A dead peer is noticed after ping + timeout, also without traffic. Servers permit pings twice as
// often, so that a client is never told that it pings too much.
inline constexpr absl::Duration kPingEvery = absl::Seconds(20);
inline constexpr absl::Duration kPingTimeout = absl::Seconds(10);
inline constexpr absl::Duration kPingPermittedEvery = absl::Seconds(10);

// Longest time in which the coordinator answers a person's request, planning included, once it has
// read the data. Who asks waits longer, so that what ends the wait is the coordinator's answer,
// which says more.
inline constexpr absl::Duration kRequestMax = absl::Minutes(2);

// Longest time in which the coordinator has read so many bytes of data sets, hashed, checked and
// written them: at the pace of a slow disk that others use too.
absl::Duration DataMax(uint64_t bytes);

// A connection of its own, not shared with other channels to the same address. With TLS the server
// must have a certificate for `peer_name`. Does not wait for the connection.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const std::string& peer_name,
                                           const Credentials& credentials);

// A listening server; destroying it cancels what is running and waits for the handlers.
class ListeningServer {
 public:
  // Serves `services`, which must outlive the result, on at most `threads_max` threads; further
  // calls are refused. The error names the address and the reason (in use, not of this machine).
  static absl::StatusOr<std::unique_ptr<ListeningServer>> Listen(
      const Address& address, const Credentials& credentials,
      const std::vector<grpc::Service*>& services, int threads_max);
  ~ListeningServer();

  // The address with the port that was chosen, where the configured one was 0.
  const Address& address() const { return address_; }

  // Accepts nothing new; calls still running after `grace` are cancelled. Waits for the handlers.
  void Shutdown(absl::Duration grace);

 private:
  ListeningServer() = default;
  Address address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_ENDPOINT_H_
