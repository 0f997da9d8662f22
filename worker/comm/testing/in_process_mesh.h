// A mesh in memory, for tests: the replicas are threads of one process.
#ifndef LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_MESH_H_
#define LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_MESH_H_

#include <memory>
#include <vector>

#include "base/clock.h"
#include "worker/comm/mesh.h"

namespace longhaul::worker {

// One for each rank; each may be used and destroyed on a thread of its own. When one is destroyed,
// the others' exchanges with it fail, as if its process had died. `clock` outlives all.
std::vector<std::unique_ptr<Mesh>> MakeInProcessMeshes(int size, Clock& clock);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_IN_PROCESS_MESH_H_
