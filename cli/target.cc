#include "cli/target.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/local_cluster.h"
#include "daemon/exposure.h"
#include "daemon/values.h"

namespace longhaul::cli {
namespace {

// Empty if it is not set.
std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

struct Found {
  std::string address;
  std::string source;
  bool is_local_cluster = false;
};

// What the command line or the environment says; nothing: the local cluster is meant.
std::optional<Found> FindGivenAddress(const Context& context) {
  if (!context.coordinator.empty()) return Found{context.coordinator, "--coordinator"};
  const std::string environment = Environment("LONGHAUL_COORDINATOR");
  if (environment.empty() || !context.dir.empty()) return std::nullopt;
  return Found{environment, "LONGHAUL_COORDINATOR"};
}

absl::StatusOr<Found> FindAddress(const Context& context) {
  if (const std::optional<Found> given = FindGivenAddress(context)) return *given;
  LH_ASSIGN_OR_RETURN(const std::optional<LocalCluster> local,
                      ReadLocalCluster(context.LocalDir()));
  if (local.has_value()) {
    return Found{local->coordinator, absl::StrCat("the local cluster in ", context.LocalDir()),
                 true};
  }
  return absl::UnavailableError(absl::StrCat(
      "no coordinator: --coordinator and LONGHAUL_COORDINATOR are not set, and there is no local "
      "cluster in ",
      context.LocalDir(), "; start one with: longhaul up --detach"));
}

// Somebody else may own every other address: the local cluster's secret is not for them.
bool IsLocalClusters(const Context& context, const daemon::Address& address) {
  const auto local = ReadLocalCluster(context.LocalDir());
  if (!local.ok() || !local->has_value()) return false;
  const auto own = daemon::ParseAddress((*local)->coordinator);
  return own.ok() && *own == address;
}

absl::StatusOr<std::string> FindTokenFile(const Context& context, const Found& found,
                                          const daemon::Address& address) {
  if (!context.token_file.empty()) return context.token_file;
  const std::string environment = Environment("LONGHAUL_TOKEN_FILE");
  if (!environment.empty() && !found.is_local_cluster) return environment;
  if (found.is_local_cluster || IsLocalClusters(context, address)) {
    return LocalTokenFile(context.LocalDir());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no credentials for the coordinator at ", found.address, " (from ", found.source,
      "): give --token-file or LONGHAUL_TOKEN_FILE, or --tls-ca, --tls-certificate and --tls-key; "
      "the token of the local cluster in ",
      context.LocalDir(), " is for that cluster only"));
}

}  // namespace

absl::StatusOr<Target> FindTarget(const Context& context) {
  LH_ASSIGN_OR_RETURN(const Found found, FindAddress(context));
  const absl::StatusOr<daemon::Address> address = daemon::ParseAddress(found.address);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(found.source, ": ", address.status().message()));
  }
  Target target{found.address, found.source, {}};
  const int tls_files =
      !context.tls_ca.empty() + !context.tls_certificate.empty() + !context.tls_key.empty();
  if (tls_files == 3) {
    target.security.tls =
        daemon::TlsFiles{context.tls_certificate, context.tls_key, context.tls_ca};
    return target;
  }
  if (tls_files != 0) {
    return absl::InvalidArgumentError(
        "mutual TLS needs all three of --tls-ca, --tls-certificate and --tls-key");
  }
  if (!daemon::IsLoopback(*address) && !context.insecure) {
    return absl::InvalidArgumentError(
        absl::StrCat(found.source, ": ", daemon::WhyExposed(*address),
                     "; give --tls-ca, --tls-certificate and --tls-key, or --insecure"));
  }
  LH_ASSIGN_OR_RETURN(target.security.cluster_token_file, FindTokenFile(context, found, *address));
  return target;
}

bool IsLocalTarget(const Context& context) {
  const std::optional<Found> given = FindGivenAddress(context);
  if (!given.has_value()) return true;
  const auto address = daemon::ParseAddress(given->address);
  return address.ok() && IsLocalClusters(context, *address);
}

}  // namespace longhaul::cli
