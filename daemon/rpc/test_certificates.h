// Certificates for tests, made on the spot: nothing secret and nothing that expires is in the tree.
#ifndef LONGHAUL_DAEMON_RPC_TEST_CERTIFICATES_H_
#define LONGHAUL_DAEMON_RPC_TEST_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "daemon/config.h"

namespace longhaul::daemon {

// A certification authority with its files in a folder that it removes at its end. Failures are
// failures of the test.
class TestAuthority {
 public:
  // `name` tells authorities of one test apart.
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();

  // A certificate with this common name and these DNS names, valid for `days` (negative: expired).
  TlsFiles Issue(const std::string& common_name, const std::vector<std::string>& dns_names = {},
                 int days = 1);
  const std::string& folder() const { return folder_; }

 private:
  struct Keys;
  const std::string folder_;
  std::unique_ptr<Keys> keys_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_TEST_CERTIFICATES_H_
