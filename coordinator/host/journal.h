// Where the coordinator's durable records live.
#ifndef LONGHAUL_COORDINATOR_HOST_JOURNAL_H_
#define LONGHAUL_COORDINATOR_HOST_JOURNAL_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/records.h"

namespace longhaul::coordinator {

struct JournalContents {
  std::vector<NodeRecord> nodes;
  std::vector<RunRecord> runs;
};

// One thread at a time.
class Journal {
 public:
  virtual ~Journal() = default;

  // Everything stored. DataLoss naming file and record for what cannot be read: the coordinator
  // must not start on half its state.
  virtual absl::StatusOr<JournalContents> Load() = 0;

  // Stores records under their names in place of older ones: all of them or, on an error, none.
  // Durable on return. ResourceExhausted on a full disk; the journal stays usable and a later Write
  // may succeed. Pointers are not kept.
  virtual absl::Status Write(const std::vector<const NodeRecord*>& nodes,
                             const std::vector<const RunRecord*>& runs) = 0;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_JOURNAL_H_
