#include "cli/context.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "cli/option_values.h"
#include "cli/output.h"

namespace longhaul::cli {

std::string Context::LocalDir() const {
  if (!dir.empty()) return dir;
  const char* home = std::getenv("HOME");
  return absl::StrCat(home != nullptr ? home : ".", "/.longhaul/local");
}

void AddCommonOptions(CLI::App& app, Context& context) {
  app.add_option("--coordinator", context.coordinator,
                 "coordinator as HOST:PORT (else $LONGHAUL_COORDINATOR, else the local cluster)");
  AddDirOption(app, context);
  app.add_option("--token-file", context.token_file,
                 "cluster token (else $LONGHAUL_TOKEN_FILE; the local cluster has its own)");
  app.add_option("--tls-ca", context.tls_ca, "CA certificate: use mutual TLS");
  app.add_option("--tls-certificate", context.tls_certificate, "client certificate");
  app.add_option("--tls-key", context.tls_key, "client key");
  app.add_option("--coordinator-name", context.coordinator_name,
                 "name in the coordinator's certificate")
      ->capture_default_str();
  app.add_flag("--insecure", context.insecure,
               "without TLS to an address that is not loopback: others on the network can read and "
               "change everything")
      ->envname("LONGHAUL_INSECURE");
  AddOutputOption(app, context);
}

void AddDirOption(CLI::App& app, Context& context) {
  app.add_option("--dir", context.dir, "folder of the local cluster (~/.longhaul/local)");
}

void AddOutputOption(CLI::App& app, Context& context) {
  app.add_option("--output", context.output, "for people, or JSON with one object a line")
      ->check(OneOf({"text", "json"}))
      ->capture_default_str();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "longhaul: %s\n", Printable(status.message()).c_str());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:  // of a file
      return kExitBadInput;
    case absl::StatusCode::kUnavailable:
      return kExitUnreachable;
    default:
      return kExitFailed;
  }
}

}  // namespace longhaul::cli
