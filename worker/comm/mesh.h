// Messages between the replicas of a stage, each with each; what collectives are made of.
#ifndef LONGHAUL_WORKER_COMM_MESH_H_
#define LONGHAUL_WORKER_COMM_MESH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace longhaul::worker {

// One call of Exchange at a time; Cancel from any thread.
class Mesh {
 public:
  virtual ~Mesh() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends and receives at once; what is empty is not moved. The peer's matching call has the same
  // sizes the other way round; calls with one peer match in their order. An error names the peer;
  // the mesh is then of no more use. Neither span is touched after the return.
  virtual absl::Status Exchange(int peer, absl::Span<const uint8_t> send,
                                absl::Span<uint8_t> receive, absl::Time deadline) = 0;

  // Present and future calls of Exchange return `reason` soon; the first reason stays.
  virtual void Cancel(const absl::Status& reason) = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_MESH_H_
