#include "daemon/rpc/credentials.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/constant_time.h"
#include "base/status_macros.h"
#include "daemon/cluster_token.h"
#include "daemon/rpc/certificates.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace longhaul::daemon {
namespace {

std::vector<std::string> CertifiedNames(const grpc::ServerContext& context) {
  std::vector<std::string> names;
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return names;
  for (const char* property : {GRPC_X509_CN_PROPERTY_NAME, GRPC_PEER_DNS_PROPERTY_NAME}) {
    for (const grpc::string_ref& value : peer->FindPropertyValues(property)) {
      std::string name(value.data(), value.size());
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

bool Contains(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Credentials>> Credentials::Load(const SecurityConfig& config,
                                                               unsigned read_every_seconds) {
  if (!config.tls) {
    LH_ASSIGN_OR_RETURN(std::string token, ReadClusterToken(config.cluster_token_file));
    return FromToken(std::move(token));
  }
  LH_ASSIGN_OR_RETURN(std::vector<std::string> names, CheckTlsFiles(*config.tls));
  std::unique_ptr<Credentials> credentials(new Credentials());
  credentials->files_ = config.tls;
  credentials->names_ = std::move(names);
  credentials->provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      config.tls->key, config.tls->certificate, config.tls->ca, read_every_seconds);
  return credentials;
}

std::unique_ptr<Credentials> Credentials::FromToken(std::string token) {
  std::unique_ptr<Credentials> credentials(new Credentials());
  credentials->token_ = std::move(token);
  return credentials;
}

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const {
  if (!tls()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForChannel() const {
  if (!tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

void Credentials::Sign(grpc::ClientContext& context) const {
  if (!token_.empty()) context.AddMetadata(kTokenMetadata, token_);
}

absl::Status Credentials::CheckCall(const grpc::ServerContext& context) const {
  if (tls()) return absl::OkStatus();
  const auto& metadata = context.client_metadata();
  const auto [begin, end] = metadata.equal_range(kTokenMetadata);
  if (begin == end) {
    return absl::UnauthenticatedError(
        "the call carries no cluster token; give this process the cluster_token_file of the "
        "cluster");
  }
  if (std::next(begin) != end ||
      !EqualInConstantTime(absl::string_view(begin->second.data(), begin->second.size()), token_)) {
    return absl::UnauthenticatedError(
        "the call carries another cluster token; give this process the cluster_token_file of this "
        "cluster");
  }
  return absl::OkStatus();
}

absl::Status Credentials::CheckPeerName(const grpc::ServerContext& context,
                                        absl::string_view node) const {
  if (!tls()) return absl::OkStatus();
  const std::vector<std::string> names = CertifiedNames(context);
  if (Contains(names, node)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the certificate is for '", absl::StrJoin(names, "', '"), "', but the node says it is '",
      node,
      "'; set 'name' to a name in the certificate, or give the node a certificate of its own"));
}

absl::Status Credentials::CheckOwnName(absl::string_view name) const {
  if (!tls() || Contains(names_, name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "certificate '", files_->certificate, "' is for '", absl::StrJoin(names_, "', '"),
      "', not for '", name, "'; a node's name must be a name in its certificate"));
}

absl::Status Credentials::CheckFilesAgain() const {
  return tls() ? CheckTlsFiles(*files_).status() : absl::OkStatus();
}

std::string DescribePeer(const grpc::ServerContext& context) {
  const std::vector<std::string> names = CertifiedNames(context);
  return names.empty() ? context.peer() : absl::StrCat(names.front(), " (", context.peer(), ")");
}

}  // namespace longhaul::daemon
