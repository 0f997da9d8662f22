// Statuses that more than one thread looks at.
#ifndef LONGHAUL_BASE_STATUS_COPY_H_
#define LONGHAUL_BASE_STATUS_COPY_H_

#include "absl/status/status.h"

namespace longhaul {

// The same code and message in storage of its own. Copies of an absl::Status share storage behind a
// counter, and the distribution's Abseil is not instrumented: ThreadSanitizer takes its release for
// a race. A status that is kept under a mutex goes in and out as its own copy.
inline absl::Status OwnCopy(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

}  // namespace longhaul

#endif  // LONGHAUL_BASE_STATUS_COPY_H_
