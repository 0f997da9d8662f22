// A mesh over Gloo's TCP transport, between the workers of one site. Gloo neither encrypts nor
// authenticates: it is only for nodes that say `trusted_network: true`. It writes to sockets that a
// peer may have closed: the process must ignore SIGPIPE.
#ifndef LONGHAUL_WORKER_COMM_GLOO_MESH_H_
#define LONGHAUL_WORKER_COMM_GLOO_MESH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/limits.h"
#include "worker/comm/mesh.h"

namespace longhaul::worker {

struct GlooOptions {
  int rank = 0;
  // Of each rank's replica, for messages: "stage 1 replica 2 (node at address)".
  std::vector<std::string> names;
  std::string host;            // of the worker's data address: what the sockets are bound to
  absl::Duration connect_max;  // of meeting one peer
};

// The mesh before its replicas have met. Each replica listens, publishes rendezvous(), and connects
// when it has those of all.
class GlooRendezvous {
 public:
  // `clock` must outlive the mesh. Unavailable if nothing can listen on the host.
  static absl::StatusOr<std::unique_ptr<GlooRendezvous>> Listen(const GlooOptions& options,
                                                                Clock& clock);
  virtual ~GlooRendezvous() = default;

  // Where the peers reach this replica, as bytes for them; at most kRendezvousBytesMax.
  virtual const std::string& rendezvous() const = 0;

  // Once. `rendezvous` is that of every rank, its own included. InvalidArgument if one is not what
  // a replica publishes; Unavailable with the peer's name if it cannot be reached in time.
  virtual absl::StatusOr<std::unique_ptr<Mesh>> Connect(
      const std::vector<std::string>& rendezvous) = 0;

  // Makes Connect return soon; thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_GLOO_MESH_H_
