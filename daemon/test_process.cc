#include "daemon/test_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "base/file.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {

TestProcess::TestProcess(const std::vector<std::string>& arguments, const std::string& output,
                         const std::string& notify) {
  std::string program = LONGHAULD;
  std::vector<char*> words = {program.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) words.push_back(argument.data());
  words.push_back(nullptr);
  std::string variable = "NOTIFY_SOCKET=" + notify;
  std::array<char*, 2> environment = {notify.empty() ? nullptr : variable.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  EXPECT_EQ(
      posix_spawn(&pid_, program.c_str(), &actions, nullptr, words.data(), environment.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
}

TestProcess::~TestProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

void TestProcess::Signal(int number) const { kill(pid_, number); }

int TestProcess::Wait() {
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int RunLonghauld(const std::vector<std::string>& arguments, const std::string& folder,
                 std::string& printed) {
  const std::string output = folder + "/output";
  const int code = TestProcess(arguments, output, "").Wait();
  printed = ReadFile(output, 1 << 20).value_or("");
  return code;
}

}  // namespace longhaul::daemon
