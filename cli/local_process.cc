#include "cli/local_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace longhaul::cli {
namespace {

// Runs in the child between fork and exec: only what is safe there.
[[noreturn]] void BecomeDaemon(const std::vector<char*>& arguments, int log_fd, pid_t parent,
                               bool die_with_parent) {
  ::setsid();
  if (die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
  }
  const int null_fd = ::open("/dev/null", O_RDONLY);
  if (null_fd < 0 || ::dup2(null_fd, STDIN_FILENO) < 0 || ::dup2(log_fd, STDOUT_FILENO) < 0 ||
      ::dup2(log_fd, STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, const std::string& log,
                            bool die_with_parent) {
  if (::access(arguments[0].c_str(), X_OK) != 0) return ErrnoStatus(errno, "run", arguments[0]);
  const int log_fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_fd < 0) return ErrnoStatus(errno, "open", log);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) BecomeDaemon(argv, log_fd, parent, die_with_parent);
  const int error = errno;
  ::close(log_fd);
  if (pid < 0) return ErrnoStatus(error, "fork for", arguments[0]);
  return pid;
}

absl::StatusOr<uint64_t> StartTicks(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  // The second field is the name in parentheses and may hold anything; count from its end.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return absl::InternalError("unreadable /proc/PID/stat");
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field <= 21; ++field) fields >> skipped;
  uint64_t ticks = 0;
  if (!(fields >> ticks)) return absl::InternalError("unreadable /proc/PID/stat");
  if (state == "Z" || state == "X") {
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  }
  return ticks;
}

absl::StatusOr<std::string> ProgramFolder() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "read", "/proc/self/exe");
  return path.parent_path().string();
}

absl::StatusOr<std::string> DaemonBuild() {
  constexpr absl::Duration kAnswerMax = absl::Seconds(10);
  constexpr size_t kAnswerBytesMax = 4096;
  LH_ASSIGN_OR_RETURN(const std::string programs, ProgramFolder());
  const int memory = ::memfd_create("longhauld --version", MFD_CLOEXEC);
  if (memory < 0) return ErrnoStatus(errno, "make", "a file in memory");
  absl::Cleanup close = [memory] { ::close(memory); };
  const std::string answer = absl::StrCat("/proc/self/fd/", memory);
  const std::string program = absl::StrCat(programs, "/longhauld");
  LH_ASSIGN_OR_RETURN(const pid_t pid, Spawn({program, "--version"}, answer, true));
  const absl::Time give_up = RealClock().Now() + kAnswerMax;
  int state = 0;
  while (::waitpid(pid, &state, WNOHANG) == 0) {
    if (RealClock().Now() < give_up) {
      Pause(absl::Milliseconds(5));
      continue;
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &state, 0);
  }
  LH_ASSIGN_OR_RETURN(std::string text, ReadFile(answer, kAnswerBytesMax));
  absl::StripAsciiWhitespace(&text);
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return absl::UnavailableError(absl::StrCat(program, " --version failed: ", text));
}

void Pause(absl::Duration duration) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock<std::mutex> lock(mutex);
  RealClock().WaitUntil(lock, never, RealClock().Now() + duration, [] { return false; });
}

}  // namespace longhaul::cli
