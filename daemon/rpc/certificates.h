// What the certificate files hold, checked before gRPC uses them: its own messages do not name the
// file.
#ifndef LONGHAUL_DAEMON_RPC_CERTIFICATES_H_
#define LONGHAUL_DAEMON_RPC_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config.h"

namespace longhaul::daemon {

// Reads the three files. Returns the common name and the DNS names of the certificate's subject,
// each once: who the holder is. InvalidArgument names the file and says what is wrong: no PEM, a
// key that belongs to another certificate, a certificate that the CA did not sign or that is out of
// date, no name. PermissionDenied if everybody may read the key.
absl::StatusOr<std::vector<std::string>> CheckTlsFiles(const TlsFiles& files);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_CERTIFICATES_H_
