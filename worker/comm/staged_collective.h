// Sums in device memory by way of the host: for devices whose replicas have no library in common.
#ifndef LONGHAUL_WORKER_COMM_STAGED_COLLECTIVE_H_
#define LONGHAUL_WORKER_COMM_STAGED_COLLECTIVE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "worker/comm/collective.h"

namespace longhaul::worker {

// Takes device memory of the backend, copies it to pinned memory in pieces of at most `piece_max`
// values, calls `host` for each, and copies back; while one piece is summed the next comes and the
// last goes. The order of additions is that of `host`, and a replica that calls its own with all
// values, being on a processor, takes part. Must not outlive the arguments, of which nobody else
// may call `host`, except for Cancel.
absl::StatusOr<std::unique_ptr<Collective>> MakeStagedCollective(
    Collective& host, compute::Backend& backend, Clock& clock,
    size_t piece_max = kCollectivePieceMax);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_STAGED_COLLECTIVE_H_
