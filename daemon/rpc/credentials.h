// Who may talk to whom: mutual TLS, or the cluster's token where TLS is off.
#ifndef LONGHAUL_DAEMON_RPC_CREDENTIALS_H_
#define LONGHAUL_DAEMON_RPC_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/config.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/server_context.h"

namespace longhaul::daemon {

// Metadata key of the cluster's token on every call without TLS.
inline constexpr char kTokenMetadata[] = "longhaul-token";

inline constexpr unsigned kFilesReadEverySeconds = 5;

// What this daemon shows to others and demands of them. Thread-safe. With TLS the files are read
// again and again, so that certificates can be replaced while the daemon runs.
class Credentials {
 public:
  // Reads and checks the token or the certificate files that the configuration names.
  static absl::StatusOr<std::unique_ptr<Credentials>> Load(
      const SecurityConfig& config, unsigned read_every_seconds = kFilesReadEverySeconds);
  static std::unique_ptr<Credentials> FromToken(std::string token);

  bool tls() const { return files_.has_value(); }

  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
  std::shared_ptr<grpc::ChannelCredentials> ForChannel() const;

  // Adds the token to an outgoing call, where there is one.
  void Sign(grpc::ClientContext& context) const;
  // The token of an incoming call is right; always so with TLS, where the handshake has checked the
  // certificate. Unauthenticated says what to do.
  absl::Status CheckCall(const grpc::ServerContext& context) const;
  // With TLS: the peer's certificate holds `node` as common name or DNS name. PermissionDenied
  // names both. Without: always so.
  absl::Status CheckPeerName(const grpc::ServerContext& context, absl::string_view node) const;

  // This daemon's own certificate holds `name`; always so without TLS.
  absl::Status CheckOwnName(absl::string_view name) const;
  // Checks the files as they are now, for a reload: what is good is taken up by itself.
  absl::Status CheckFilesAgain() const;

 private:
  Credentials() = default;

  std::string token_;  // empty with TLS
  std::optional<TlsFiles> files_;
  std::vector<std::string> names_;  // in the own certificate as it was loaded; none without TLS
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
};

// For messages: the certified name where there is one, and the network address.
std::string DescribePeer(const grpc::ServerContext& context);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CREDENTIALS_H_
