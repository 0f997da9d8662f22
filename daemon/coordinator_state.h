// What a coordinator knows of itself beside its journal.
#ifndef LONGHAUL_DAEMON_COORDINATOR_STATE_H_
#define LONGHAUL_DAEMON_COORDINATOR_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace longhaul::daemon {

struct CoordinatorSelf {
  uint32_t term = 1;         // rises when the journal was lost, so that old epochs are fenced off
  std::string token_secret;  // of the data-plane tokens; 64 hexadecimal digits
};

// Reads or makes DIR/coordinator.json. If the journal is gone although a coordinator ran here, the
// term rises. The folder must be locked.
absl::StatusOr<CoordinatorSelf> TakeCoordinatorSelf(const std::string& folder,
                                                    const std::string& journal_path);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_COORDINATOR_STATE_H_
