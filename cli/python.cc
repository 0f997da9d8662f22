#include "cli/python.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/local_process.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

constexpr absl::Duration kCheckMax = absl::Minutes(1);
constexpr absl::Duration kInstallMax = absl::Minutes(30);
constexpr char kLibrary[] = "tokenizers>=0.15,<1";

enum class Show { kNothing, kOnStderr };

std::vector<char*> Pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Starts a program of the PATH with what it prints shown on standard error or nowhere.
absl::StatusOr<pid_t> Start(const std::vector<std::string>& arguments, Show show) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) {
    return absl::ResourceExhaustedError("out of memory");
  }
  absl::Cleanup destroy = [&] { ::posix_spawn_file_actions_destroy(&actions); };
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (show == Show::kNothing) {
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0].c_str(), &actions, nullptr,
                                   Pointers(arguments).data(), environ);
  if (error != 0) return ErrnoStatus(error, "run", arguments[0]);
  return pid;
}

// Runs a program to its end; an error also if it does not end with 0 or within `time_max`.
absl::Status RunProgram(const std::vector<std::string>& arguments, Show show,
                        absl::Duration time_max) {
  LH_ASSIGN_OR_RETURN(const pid_t pid, Start(arguments, show));
  const absl::Time deadline = RealClock().Now() + time_max;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (RealClock().Now() > deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return absl::DeadlineExceededError(absl::StrCat(
          arguments[0], " did not end within ", FormatSeconds(absl::ToDoubleSeconds(time_max))));
    }
    Pause(absl::Milliseconds(10));
  }
  if (ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(arguments[0], " failed"));
}

bool CanDo(const std::string& python, const PythonOptions& options) {
  const char* const test = options.needs_tokenizers ? "import tokenizers" : "import json";
  return RunProgram({python, "-c", test}, Show::kNothing, kCheckMax).ok();
}

absl::StatusOr<std::string> Install(const PythonOptions& options) {
  const std::string python = absl::StrCat(options.folder, "/bin/python3");
  std::fprintf(stderr, "longhaul: installing %s with pip into %s\n", kLibrary,
               Printable(options.folder).c_str());
  absl::Status status = MakeDirectories(options.folder);
  if (status.ok()) {
    status = RunProgram({"python3", "-m", "venv", "--clear", options.folder}, Show::kOnStderr,
                        kInstallMax);
  }
  if (!status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a virtual environment in ", options.folder, ": ",
                     status.message(), "; on Debian it needs the package python3-venv"));
  }
  status = RunProgram(
      {python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", kLibrary},
      Show::kOnStderr, kInstallMax);
  if (!status.ok()) return Annotate(status, absl::StrCat("cannot install ", kLibrary));
  if (CanDo(python, options)) return python;
  return absl::FailedPreconditionError(
      absl::StrCat("tokenizers is installed in ", options.folder, " but does not load"));
}

}  // namespace

absl::StatusOr<std::string> FindPython(const PythonOptions& options) {
  const std::string what =
      options.needs_tokenizers ? "Python's library tokenizers" : "a working Python";
  if (const char* chosen = std::getenv("LONGHAUL_PYTHON"); chosen != nullptr && *chosen != '\0') {
    if (CanDo(chosen, options)) return std::string(chosen);
    return absl::FailedPreconditionError(
        absl::StrCat(chosen, " (LONGHAUL_PYTHON) does not have ", what));
  }
  if (CanDo("python3", options)) return std::string("python3");
  const std::string own = absl::StrCat(options.folder, "/bin/python3");
  if (::access(own.c_str(), X_OK) == 0 && CanDo(own, options)) return own;
  if (!options.needs_tokenizers) {
    return absl::FailedPreconditionError("python3 is not installed, or does not run");
  }
  if (options.install) return Install(options);
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not installed: --install puts it into ", options.folder,
                   " with pip (about 10 MB, needs the network), or let LONGHAUL_PYTHON name a ",
                   "Python that has it"));
}

absl::Status Become(const std::vector<std::string>& arguments) {
  ::execvp(arguments[0].c_str(), Pointers(arguments).data());
  return ErrnoStatus(errno, "run", arguments[0]);
}

}  // namespace longhaul::cli
