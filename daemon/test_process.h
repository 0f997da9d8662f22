// A longhauld as a child process of a test.
#ifndef LONGHAUL_DAEMON_TEST_PROCESS_H_
#define LONGHAUL_DAEMON_TEST_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace longhaul::daemon {

// Killed when destroyed.
class TestProcess {
 public:
  // `output` is the file for what it prints; `notify` may be empty.
  TestProcess(const std::vector<std::string>& arguments, const std::string& output,
              const std::string& notify);
  ~TestProcess();
  void Signal(int number) const;
  // Its exit code, or 128 plus the number of the signal that ended it.
  int Wait();

 private:
  pid_t pid_ = -1;
};

// Runs longhauld with these arguments to its end; `printed` is what it printed.
int RunLonghauld(const std::vector<std::string>& arguments, const std::string& folder,
                 std::string& printed);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_TEST_PROCESS_H_
