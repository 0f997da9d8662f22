// longhaul up|down
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/local_cluster.h"
#include "cli/local_process.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/stopped_runs.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

constexpr absl::Duration kReadyMax = absl::Seconds(60);

struct DownOptions {
  int patience_seconds = 30;
};

// A daemon that ended by itself, with where to look.
absl::Status CheckAllAlive(const LocalCluster& cluster, const std::string& dir) {
  for (const LocalProcess& process : cluster.processes) {
    ::waitpid(process.pid, nullptr, WNOHANG);
    if (IsAlive(process)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        process.name, " ended while starting; its log says why: ", dir, "/", process.name, "/log"));
  }
  return absl::OkStatus();
}

// Waits until the coordinator answers and every worker has joined. Cancelled on one of `signals`,
// which the caller has blocked.
absl::Status AwaitReady(const LocalCluster& cluster, const Context& context, int workers,
                        const sigset_t& signals) {
  const timespec interval{0, 50'000'000};
  const absl::Time deadline = RealClock().Now() + kReadyMax;
  std::string last = "the coordinator did not answer";
  while (RealClock().Now() < deadline) {
    LH_RETURN_IF_ERROR(CheckAllAlive(cluster, context.LocalDir()));
    auto client = Client::Connect(context);
    if (client.ok()) {
      auto nodes = (*client)->ListNodes();
      if (nodes.ok()) {
        const auto connected =
            std::count_if(nodes->nodes().begin(), nodes->nodes().end(),
                          [](const v1::NodeSummary& node) { return node.state() == "connected"; });
        if (connected >= workers) return absl::OkStatus();
        last = absl::StrCat(connected, " of ", workers, " workers have joined");
      }
    }
    if (const int signal = sigtimedwait(&signals, nullptr, &interval); signal > 0) {
      return absl::CancelledError(absl::StrCat("ended by signal ", signal, " (", strsignal(signal),
                                               ") before the cluster was ready"));
    }
  }
  return absl::DeadlineExceededError(absl::StrCat("after ", absl::FormatDuration(kReadyMax), ", ",
                                                  last, "; logs are in ", context.LocalDir()));
}

// Runs until SIGINT or SIGTERM (which the caller has blocked); says when a daemon ends by itself.
void Supervise(const LocalCluster& cluster, const std::string& dir, const sigset_t& signals) {
  std::set<std::string> gone;
  const timespec interval{0, 200'000'000};
  while (sigtimedwait(&signals, nullptr, &interval) < 0) {
    for (const LocalProcess& process : cluster.processes) {
      int status = 0;
      const bool ended = ::waitpid(process.pid, &status, WNOHANG) == process.pid;
      if (!ended || !gone.insert(process.name).second) continue;
      const std::string how = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                                  : absl::StrCat("code ", WEXITSTATUS(status));
      std::fprintf(stderr, "longhaul: %s ended with %s; log: %s/%s/log\n", process.name.c_str(),
                   how.c_str(), dir.c_str(), process.name.c_str());
    }
    if (gone.size() == cluster.processes.size()) return;
  }
}

void PrintUp(const Context& context, const LocalCluster& cluster,
             const LocalClusterOptions& options) {
  if (context.json()) {
    PrintJsonLine({{"coordinator", cluster.coordinator},
                   {"dir", options.dir},
                   {"workers", options.workers},
                   {"sites", options.sites}});
    return;
  }
  Print(absl::StrCat("coordinator ", cluster.coordinator, ", ", options.workers,
                     options.workers == 1 ? " worker in " : " workers in ", options.sites,
                     options.sites == 1 ? " site" : " sites", "; folder ", options.dir, "\n"));
  if (!options.detach) Print("Ctrl+C stops the cluster\n");
}

std::string Names(const std::vector<LocalProcess>& processes) {
  return absl::StrJoin(processes, ", ", [](std::string* out, const LocalProcess& process) {
    out->append(process.name);
  });
}

// Stops the cluster that `local` leads to and prints what was stopped and what became of its runs.
absl::Status StopAndTell(const Context& local, const LocalCluster& cluster,
                         absl::Duration patience) {
  const std::vector<LocalProcess> alive = Alive(cluster.processes);
  if (alive.empty()) {
    if (!local.json()) Print(absl::StrCat("nothing of the cluster in ", local.dir, " runs\n"));
    return absl::OkStatus();
  }
  if (!local.json()) Print(absl::StrCat("stopping ", Names(alive), "\n"));
  StoppedRuns runs(local);
  LH_RETURN_IF_ERROR(StopLocalCluster(cluster, patience, [&] { runs.PrintEnds(local); }));
  if (!local.json()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const LocalProcess& process : alive) names.push_back(process.name);
  PrintJsonLine({{"dir", local.dir}, {"stopped", names}});
  return absl::OkStatus();
}

int Up(Context& context, LocalClusterOptions options) {
  if (options.sites > options.workers) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "--sites ", options.sites, " needs at least as many workers, not ", options.workers)));
  }
  options.dir = std::filesystem::absolute(context.LocalDir()).lexically_normal().string();
  // This cluster with its own token, whatever else the command line and the environment say.
  Context local;
  local.dir = options.dir;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  auto cluster = StartLocalCluster(options);
  if (!cluster.ok()) return Fail(cluster.status());
  if (absl::Status ready = AwaitReady(*cluster, local, options.workers, signals); !ready.ok()) {
    const absl::Status stopped = StopLocalCluster(*cluster, absl::Seconds(1), [] {});
    return Fail(stopped.ok() ? ready : Annotate(ready, stopped.message()));
  }
  PrintUp(context, *cluster, options);
  if (options.detach) return kExitDone;
  Supervise(*cluster, options.dir, signals);
  local.output = context.output;
  const absl::Status stopped = StopAndTell(local, *cluster, absl::Seconds(30));
  return stopped.ok() ? kExitDone : Fail(stopped);
}

int Down(Context& context, const DownOptions& options) {
  Context local;
  local.dir = context.LocalDir();
  local.output = context.output;
  const auto cluster = ReadLocalCluster(local.dir);
  if (!cluster.ok()) return Fail(cluster.status());
  if (!cluster->has_value()) {
    return Fail(absl::NotFoundError(absl::StrCat("there is no local cluster in ", local.dir)));
  }
  const absl::Status stopped =
      StopAndTell(local, **cluster, absl::Seconds(options.patience_seconds));
  return stopped.ok() ? kExitDone : Fail(stopped);
}

}  // namespace

void RegisterLocalCommands(CLI::App& app, Context& context, Command& chosen) {
  auto options = std::make_shared<LocalClusterOptions>();
  CLI::App* up = app.add_subcommand("up", "start a local cluster of real daemons");
  AddDirOption(*up, context);
  AddOutputOption(*up, context);
  up->add_option("--workers", options->workers, "number of workers")
      ->check(Within(1, 64))
      ->capture_default_str();
  up->add_option("--sites", options->sites, "number of sites they are spread over")
      ->check(Within(1, 64))
      ->capture_default_str();
  up->add_option("--threads", options->threads, "threads of each worker (cores shared out evenly)")
      ->check(Within(1, 1024));
  up->add_flag("--detach", options->detach, "return once it is ready; `longhaul down` stops it");
  up->callback([&chosen, options] { chosen = [options](Context& c) { return Up(c, *options); }; });

  auto down_options = std::make_shared<DownOptions>();
  CLI::App* down = app.add_subcommand("down", "stop the local cluster; its runs are kept");
  AddDirOption(*down, context);
  AddOutputOption(*down, context);
  down->add_option("--patience", down_options->patience_seconds,
                   "seconds for an orderly end before it is enforced")
      ->check(Within(1, 3600))
      ->capture_default_str();
  down->callback([&chosen, down_options] {
    chosen = [down_options](Context& c) { return Down(c, *down_options); };
  });
}

}  // namespace longhaul::cli
