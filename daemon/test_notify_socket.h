// For tests: the service manager's end of readiness messages.
#ifndef LONGHAUL_DAEMON_TEST_NOTIFY_SOCKET_H_
#define LONGHAUL_DAEMON_TEST_NOTIFY_SOCKET_H_

#include <string>

namespace longhaul::daemon {

// Plays the service manager: a datagram socket that NOTIFY_SOCKET names.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path);
  ~NotifySocket();
  const std::string& path() const { return path_; }
  // The next message that begins with `start`; empty if none comes in thirty seconds.
  std::string WaitFor(const std::string& start);

 private:
  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_TEST_NOTIFY_SOCKET_H_
