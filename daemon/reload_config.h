// What SIGHUP does to a running daemon.
#ifndef LONGHAUL_DAEMON_RELOAD_CONFIG_H_
#define LONGHAUL_DAEMON_RELOAD_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/log.h"
#include "daemon/reload.h"
#include "daemon/rpc/credentials.h"

namespace longhaul::daemon {

// Reads the configuration file again, takes up the log level and the certificates, and says in the
// log which changed keys need a restart. A file that is not acceptable changes nothing.
template <typename Config>
void ReloadConfig(const Config& running, const std::string& path,
                  absl::StatusOr<Config> (*parse)(absl::string_view, const std::string&),
                  Credentials& credentials, Log& log) {
  const auto text = ReadConfigFile(path);
  const auto wanted = text.ok() ? parse(*text, path) : text.status();
  if (!wanted.ok()) {
    log.Error("nothing reloaded", {{"reason", std::string(wanted.status().message())}});
    return;
  }
  log.SetLevel(wanted->log_level);
  const absl::Status files = credentials.CheckFilesAgain();
  if (!files.ok()) {
    log.Error("certificates not usable", {{"reason", std::string(files.message())}});
  }
  const std::vector<std::string> rest = NeedRestart(running, *wanted);
  if (!rest.empty()) {
    log.Warning("needs a restart to take effect", {{"keys", absl::StrJoin(rest, ", ")}});
  }
  log.Info("configuration reloaded");
}

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RELOAD_CONFIG_H_
