// The journal in an SQLite database (WAL, synchronous=FULL).
#ifndef LONGHAUL_COORDINATOR_HOST_SQLITE_JOURNAL_H_
#define LONGHAUL_COORDINATOR_HOST_SQLITE_JOURNAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/host/journal.h"

namespace longhaul::coordinator {

// Creates the file if it is absent. FailedPrecondition, naming both versions, for a schema newer
// than this build's; DataLoss naming the file for one that is damaged or no database; Unavailable
// if another process has it open.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& path);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_SQLITE_JOURNAL_H_
