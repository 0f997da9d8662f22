#include "daemon/test_notify_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {

NotifySocket::NotifySocket(const std::string& path)
    : path_(path), descriptor_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  unlink(path.c_str());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

NotifySocket::~NotifySocket() {
  close(descriptor_);
  unlink(path_.c_str());
}

std::string NotifySocket::WaitFor(const std::string& start) {
  pollfd event = {descriptor_, POLLIN, 0};
  while (poll(&event, 1, 30000) == 1) {
    std::array<char, 4096> buffer;
    const ssize_t size = recv(descriptor_, buffer.data(), buffer.size(), 0);
    const std::string message(buffer.data(), static_cast<size_t>(size > 0 ? size : 0));
    if (absl::StartsWith(message, start)) return message;
  }
  return "";
}

}  // namespace longhaul::daemon
