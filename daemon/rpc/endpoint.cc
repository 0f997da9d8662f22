#include "daemon/rpc/endpoint.h"

#include <grpc/support/time.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"

namespace longhaul::daemon {
namespace {

// Bytes that one stream may have in flight before gRPC's measurement of the link sets its own
// figure; a WAN link of 100 Mbit/s and 150 ms holds about as much.
constexpr int kStreamLookaheadBytes = 2 << 20;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// Why an address cannot be bound, found by trying: gRPC only says that it did not work.
std::string WhyNotBound(const Address& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return gai_strerror(error);
  }
  int error = 0;
  for (const addrinfo* each = found; each != nullptr && error == 0; each = each->ai_next) {
    const int descriptor = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    const int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(descriptor, each->ai_addr, each->ai_addrlen) != 0 || listen(descriptor, 1) != 0) {
      error = errno;
    }
    close(descriptor);
  }
  freeaddrinfo(found);
  if (error == EADDRINUSE) {
    return "the port is in use by another process; stop that or choose another port";
  }
  if (error == EADDRNOTAVAIL) return "it is not an address of this machine";
  return error == 0 ? "the server could not be started" : std::strerror(error);
}

}  // namespace

absl::Duration DataMax(uint64_t bytes) {
  constexpr double kBytesPerSecond = 8 << 20;
  return absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const std::string& peer_name,
                                           const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPingEvery));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamLookaheadBytes);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  if (credentials.tls()) arguments.SetSslTargetNameOverride(peer_name);
  return grpc::CreateCustomChannel(address, credentials.ForChannel(), arguments);
}

absl::StatusOr<std::unique_ptr<ListeningServer>> ListeningServer::Listen(
    const Address& address, const Credentials& credentials,
    const std::vector<grpc::Service*>& services, int threads_max) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(ToString(address), credentials.ForServer(), &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(threads_max);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  // Without this two daemons could share a port and each get half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPingEvery));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kPingPermittedEvery));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamLookaheadBytes);
  std::unique_ptr<ListeningServer> result(new ListeningServer());
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", ToString(address), ": ", WhyNotBound(address)));
  }
  result->address_ = {address.host, port};
  return result;
}

ListeningServer::~ListeningServer() { Shutdown(absl::ZeroDuration()); }

void ListeningServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(absl::ToInt64Milliseconds(grace), GPR_TIMESPAN)));
  server_->Wait();
  server_.reset();
}

}  // namespace longhaul::daemon
