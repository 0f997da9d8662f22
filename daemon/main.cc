// longhauld: the daemon. Exit codes: 0 done, 1 failed, 2 bad usage or bad configuration.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/text_escape.h"
#include "compute/backend/cuda/device_facts.h"
#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/coordinator_daemon.h"
#include "daemon/daemon_loop.h"
#include "daemon/folder.h"
#include "daemon/last_resort.h"
#include "daemon/lifecycle.h"
#include "daemon/log.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/grpc_log.h"
#include "daemon/rpc/protocol.h"
#include "daemon/worker_daemon.h"

namespace longhaul::daemon {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

struct Arguments {
  std::string config;
  bool check = false;
};

int Fail(const Log& log, const absl::Status& status, int code) {
  log.Error(status.message());
  return code;
}

// One kind of daemon: how its configuration is read and how it is started.
template <typename Config>
struct Role {
  absl::StatusOr<Config> (*parse)(absl::string_view, const std::string&);
  absl::StatusOr<std::unique_ptr<Daemon>> (*start)(const Config&, const std::string&,
                                                   std::unique_ptr<Credentials>, Clock&, Log&);
};

template <typename Config>
int RunRole(const Role<Config>& role, const Arguments& arguments) {
  Log log(StyleFromEnvironment(), LogLevel::kInfo);
  absl::StatusOr<Signals> signals = Signals::Catch();
  if (!signals.ok()) return Fail(log, signals.status(), kFailed);
  const absl::StatusOr<std::string> text = ReadConfigFile(arguments.config);
  if (!text.ok()) return Fail(log, text.status(), kBadUsage);
  const absl::StatusOr<Config> config = role.parse(*text, arguments.config);
  if (!config.ok()) return Fail(log, config.status(), kBadUsage);
  log.SetLevel(config->log_level);
  absl::StatusOr<std::unique_ptr<Credentials>> credentials = Credentials::Load(config->security);
  if (!credentials.ok()) {
    return Fail(log, Annotate(credentials.status(), config->security_place), kBadUsage);
  }
  if (absl::Status folder = CheckFolder(config->folder); !folder.ok()) {
    // The service manager does not start a daemon again after kBadUsage.
    const int code = absl::IsInvalidArgument(folder) ? kBadUsage : kFailed;
    return Fail(log, Annotate(folder, absl::StrCat(arguments.config, ": 'folder'")), code);
  }
  if (arguments.check) {
    std::printf("%s: the configuration is good\n", arguments.config.c_str());
    if (std::fflush(stdout) == 0) return kDone;
    return Fail(log, ErrnoStatus(errno, "write to", "standard output"), kFailed);
  }
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      role.start(*config, arguments.config, *std::move(credentials), RealClock(), log);
  if (!daemon.ok()) return Fail(log, daemon.status(), kFailed);
  const absl::Status end = RunDaemon(**daemon, *signals, ServiceManager(), RealClock(), log);
  std::optional<LastResort> last_resort;
  if (!end.ok()) last_resort.emplace(kFailed, kFailMax, RealClock(), log);
  daemon->reset();
  if (!end.ok()) return Fail(log, end, kFailed);
  log.Info("stopped");
  return kDone;
}

CLI::App* AddRole(CLI::App& app, const std::string& name, const std::string& help,
                  Arguments& arguments) {
  CLI::App* role = app.add_subcommand(name, help);
  role->add_option("--config", arguments.config, "configuration file (YAML)")->required();
  role->add_flag("--check", arguments.check,
                 "check the configuration and the files it names, then "
                 "end");
  return role;
}

int Main(int argc, char** argv) {
  // Whatever a library creates, too: SQLite's files hold the secrets of the data plane.
  umask(S_IRWXG | S_IRWXO);
  SilenceGrpc();
  compute::SetCudaEnvironment();
  CLI::App app("Longhaul's daemon: a coordinator, or a worker of one.", "longhauld");
  app.set_version_flag("--version", absl::StrCat("longhauld ", OwnProtocol().build, ", ",
                                                 compute::DescribeCudaBuild()));
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* coordinator =
      AddRole(app, "coordinator", "assigns the stages of runs to workers", arguments);
  AddRole(app, "worker", "trains the stages that the coordinator assigns to it", arguments);
  if (const std::string unknown = UnknownCommand(app, argc, argv); !unknown.empty()) {
    std::fprintf(stderr, "longhauld: %s\n", EscapeControls(unknown, Newlines::kEscaped).c_str());
    return kBadUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err) == 0 ? kDone : kBadUsage;
    std::fputs(err.str().c_str(), stderr);
    std::fputs(out.str().c_str(), stdout);
    return std::fflush(stdout) == 0 ? code : kFailed;
  }
  if (coordinator->parsed()) {
    return RunRole(Role<CoordinatorConfig>{ParseCoordinatorConfig, StartCoordinator}, arguments);
  }
  return RunRole(Role<WorkerConfig>{ParseWorkerConfig, StartWorker}, arguments);
}

}  // namespace
}  // namespace longhaul::daemon

int main(int argc, char** argv) { return longhaul::daemon::Main(argc, argv); }
