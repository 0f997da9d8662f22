#include "cli/local_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "cli/local_process.h"
#include "daemon/values.h"

namespace longhaul::cli {
namespace {

constexpr int64_t kSchema = 1;
constexpr uint64_t kClusterFileBytesMax = 1 << 20;

std::string ClusterFile(const std::string& dir) { return absl::StrCat(dir, "/cluster.json"); }

absl::Status WriteClusterFile(const std::string& dir, const LocalCluster& cluster) {
  Json processes = Json::array();
  for (const LocalProcess& process : cluster.processes) {
    processes.push_back(
        {{"name", process.name}, {"pid", process.pid}, {"start_ticks", process.start_ticks}});
  }
  const Json root = {{"schema", kSchema},
                     {"coordinator", cluster.coordinator},
                     {"processes", std::move(processes)}};
  return WriteFileAtomically(ClusterFile(dir), root.dump(2) + "\n");
}

absl::StatusOr<LocalCluster> ParseCluster(absl::string_view text) {
  LH_ASSIGN_OR_RETURN(const Json root, ParseJson(text, kClusterFileBytesMax));
  LH_RETURN_IF_ERROR(JsonSchema(root, kSchema));
  LocalCluster cluster;
  LH_ASSIGN_OR_RETURN(cluster.coordinator, JsonText(root, "coordinator"));
  LH_ASSIGN_OR_RETURN(const Json* const processes, JsonArray(root, "processes"));
  for (const Json& item : *processes) {
    LocalProcess process;
    LH_ASSIGN_OR_RETURN(process.name, JsonText(item, "name"));
    LH_ASSIGN_OR_RETURN(process.pid, JsonWhole(item, "pid", 1, std::numeric_limits<pid_t>::max()));
    LH_ASSIGN_OR_RETURN(process.start_ticks,
                        JsonWhole(item, "start_ticks", 0, std::numeric_limits<int64_t>::max()));
    cluster.processes.push_back(std::move(process));
  }
  return cluster;
}

// A TCP port of the loopback interface that is free now; `wanted` if it is.
absl::StatusOr<int> FreePort(int wanted) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "make", "a socket");
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(wanted));
  socklen_t length = sizeof(address);
  int result = ::bind(fd, reinterpret_cast<sockaddr*>(&address), length);
  if (result == 0) result = ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  const int error = errno;
  ::close(fd);
  if (result == 0) return ntohs(address.sin_port);
  if (wanted != 0) return FreePort(0);
  return ErrnoStatus(error, "find", "a free port on 127.0.0.1");
}

absl::Status MakeToken(const std::string& path) {
  if (FileSize(path).ok()) return absl::OkStatus();
  char bytes[32];
  if (::getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return ErrnoStatus(errno, "draw", "a random token");
  }
  return WriteFileAtomically(
      path, absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes))) + "\n");
}

// A YAML string in double quotes, in which JSON's escapes hold.
std::string Quoted(const std::string& text) { return Json(text).dump(); }

absl::Status WriteConfigs(const LocalClusterOptions& options, const std::string& coordinator) {
  const std::string token = Quoted(LocalTokenFile(options.dir));
  const std::string folder = absl::StrCat(options.dir, "/coordinator");
  LH_RETURN_IF_ERROR(MakeDirectories(folder));
  LH_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(folder, "/config.yaml"),
      absl::StrCat("listen: ", coordinator, "\nfolder: ", Quoted(folder + "/state"),
                   "\ncluster_token_file: ", token, "\n")));
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : std::max(1, cores / options.workers);
  for (int w = 0; w < options.workers; ++w) {
    const std::string name = absl::StrCat("worker-", w + 1);
    const std::string worker = absl::StrCat(options.dir, "/", name);
    const int site = w * options.sites / options.workers + 1;
    LH_RETURN_IF_ERROR(MakeDirectories(worker));
    LH_RETURN_IF_ERROR(WriteFileAtomically(
        absl::StrCat(worker, "/config.yaml"),
        absl::StrCat("name: ", name, "\nsite: site-", site, "\ncoordinator: ", coordinator,
                     "\nfolder: ", Quoted(worker + "/state"), "\nthreads: ", threads,
                     "\ntrusted_network: true", "\ncluster_token_file: ", token, "\n")));
  }
  return absl::OkStatus();
}

absl::StatusOr<LocalProcess> StartDaemon(const LocalClusterOptions& options,
                                         const std::string& name, const std::string& role) {
  LH_ASSIGN_OR_RETURN(const std::string programs, ProgramFolder());
  const std::string folder = absl::StrCat(options.dir, "/", name);
  LocalProcess process;
  process.name = name;
  LH_ASSIGN_OR_RETURN(process.pid, Spawn({absl::StrCat(programs, "/longhauld"), role, "--config",
                                          absl::StrCat(folder, "/config.yaml")},
                                         absl::StrCat(folder, "/log"), !options.detach));
  LH_ASSIGN_OR_RETURN(process.start_ticks, StartTicks(process.pid));
  return process;
}

absl::Status StartDaemons(const LocalClusterOptions& options, LocalCluster& cluster) {
  LH_ASSIGN_OR_RETURN(LocalProcess coordinator, StartDaemon(options, "coordinator", "coordinator"));
  cluster.processes.push_back(std::move(coordinator));
  for (int w = 1; w <= options.workers; ++w) {
    LH_ASSIGN_OR_RETURN(LocalProcess worker,
                        StartDaemon(options, absl::StrCat("worker-", w), "worker"));
    cluster.processes.push_back(std::move(worker));
  }
  return WriteClusterFile(options.dir, cluster);
}

// Takes the exit status of a process that is our child, so that it does not stay a zombie.
void Reap(const LocalProcess& process) { ::waitpid(process.pid, nullptr, WNOHANG); }

void Signal(const std::vector<LocalProcess>& processes, int signal) {
  for (const LocalProcess& process : processes) {
    if (IsAlive(process)) ::kill(process.pid, signal);
  }
}

bool WaitUntilGone(const std::vector<LocalProcess>& processes, absl::Duration patience) {
  const absl::Time deadline = RealClock().Now() + patience;
  while (!Alive(processes).empty()) {
    if (RealClock().Now() >= deadline) return false;
    Pause(absl::Milliseconds(20));
  }
  return true;
}

// Ends a group: politely, firmly, in any case.
absl::Status End(const std::vector<LocalProcess>& processes, absl::Duration patience) {
  for (const int signal : {SIGTERM, SIGTERM, SIGKILL}) {
    Signal(processes, signal);
    if (WaitUntilGone(processes, patience)) return absl::OkStatus();
  }
  std::vector<std::string> left;
  for (const LocalProcess& process : Alive(processes)) {
    left.push_back(absl::StrCat(process.name, " (process ", process.pid, ")"));
  }
  return absl::DeadlineExceededError(absl::StrCat("still running: ", absl::StrJoin(left, ", ")));
}

}  // namespace

std::string LocalTokenFile(const std::string& dir) { return absl::StrCat(dir, "/token"); }

absl::StatusOr<std::optional<LocalCluster>> ReadLocalCluster(const std::string& dir) {
  const auto text = ReadFile(ClusterFile(dir), kClusterFileBytesMax);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  LH_RETURN_IF_ERROR(text.status());
  auto cluster = ParseCluster(*text);
  if (cluster.ok()) return *std::move(cluster);
  return absl::InvalidArgumentError(absl::StrCat(
      ClusterFile(dir), " is damaged: ", cluster.status().message(), "; end the daemons of ", dir,
      " that still run (DIR/*/state/lock holds their process ids), "
      "remove ",
      ClusterFile(dir), ", and start again with: longhaul up --dir ", dir));
}

bool IsAlive(const LocalProcess& process) {
  const auto ticks = StartTicks(process.pid);
  return process.pid > 0 && ticks.ok() && *ticks == process.start_ticks;
}

std::vector<LocalProcess> Alive(const std::vector<LocalProcess>& processes) {
  std::vector<LocalProcess> alive;
  for (const LocalProcess& process : processes) {
    Reap(process);
    if (IsAlive(process)) alive.push_back(process);
  }
  return alive;
}

namespace {

absl::Status CheckNoneAlive(const LocalCluster& cluster, const std::string& dir) {
  std::vector<std::string> alive, dead;
  for (const LocalProcess& process : cluster.processes) {
    Reap(process);
    (IsAlive(process) ? alive : dead).push_back(process.name);
  }
  if (alive.empty()) return absl::OkStatus();
  if (dead.empty()) {
    return absl::AlreadyExistsError(absl::StrCat("a local cluster already runs in ", dir,
                                                 "; stop it with: longhaul down --dir ", dir));
  }
  return absl::AlreadyExistsError(
      absl::StrCat("of the local cluster in ", dir, " only ", absl::StrJoin(alive, ", "),
                   " still runs, and ", absl::StrJoin(dead, ", "), " is dead (", dir, "/",
                   dead.front(), "/log says why); stop what is left with: longhaul down --dir ",
                   dir, " and then start it again with: longhaul up --dir ", dir));
}

}  // namespace

absl::StatusOr<LocalCluster> StartLocalCluster(const LocalClusterOptions& options) {
  LH_RETURN_IF_ERROR(MakeDirectories(options.dir));
  LH_ASSIGN_OR_RETURN(const std::optional<LocalCluster> old, ReadLocalCluster(options.dir));
  int wanted_port = 0;
  if (old.has_value()) {
    LH_RETURN_IF_ERROR(CheckNoneAlive(*old, options.dir));
    const auto address = daemon::ParseAddress(old->coordinator);
    if (address.ok()) wanted_port = address->port;
  }
  LH_ASSIGN_OR_RETURN(const int port, FreePort(wanted_port));
  LH_RETURN_IF_ERROR(MakeToken(LocalTokenFile(options.dir)));
  LocalCluster cluster;
  cluster.coordinator = absl::StrCat("127.0.0.1:", port);
  LH_RETURN_IF_ERROR(WriteConfigs(options, cluster.coordinator));
  const absl::Status started = StartDaemons(options, cluster);
  if (started.ok()) return cluster;
  const absl::Status ended = StopLocalCluster(cluster, absl::Seconds(2), [] {});
  return ended.ok() ? started : Annotate(started, ended.message());
}

absl::Status StopLocalCluster(const LocalCluster& cluster, absl::Duration patience,
                              absl::FunctionRef<void()> workers_gone) {
  std::vector<LocalProcess> workers, coordinators;
  for (const LocalProcess& process : cluster.processes) {
    (process.name == "coordinator" ? coordinators : workers).push_back(process);
  }
  const absl::Status ended = End(workers, patience);
  workers_gone();
  LH_RETURN_IF_ERROR(End(coordinators, patience));
  return ended;
}

}  // namespace longhaul::cli
