// Sums and broadcasts among the replicas of a stage.
#ifndef LONGHAUL_WORKER_COMM_COLLECTIVE_H_
#define LONGHAUL_WORKER_COMM_COLLECTIVE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/comm/mesh.h"

namespace longhaul::worker {

// Every replica makes the same calls with the same sizes in the same order; one at a time, on any
// thread. Values are there when a call is made, the results when it returns; after an error the
// values are undefined. Results have the same bits on every replica. An error names the peers; the
// collective is then of no more use. A call that cannot be finished, because a peer is dead or
// never comes to it, ends with an error by its deadline.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Whether AllReduceSum and Broadcast take device memory. Doubles are always in host memory.
  virtual bool on_device() const { return false; }

  // Replaces `values` by their sum over all ranks, element by element. Unless a device's library
  // adds, the ranks alone fix the order. Let p be the largest power of two that is at most size():
  // first rank r + p is added to rank r, where there is one; then the p sums are added as a binary
  // tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).
  virtual absl::Status AllReduceSum(absl::Span<float> values, absl::Time deadline) = 0;
  virtual absl::Status SumDoubles(absl::Span<double> values, absl::Time deadline) = 0;
  // Replaces `values` by those of rank 0.
  virtual absl::Status Broadcast(absl::Span<float> values, absl::Time deadline) = 0;
  virtual absl::Status BroadcastDoubles(absl::Span<double> values, absl::Time deadline) = 0;

  // Present and future calls return `reason` soon. Thread-safe; the first reason stays.
  virtual void Cancel(const absl::Status& reason) = 0;
};

// Floats that are moved at once: more are taken in pieces, each as if it were a call of its own.
inline constexpr size_t kCollectivePieceMax = size_t{1} << 20;

// Adds in the tree's order by recursive halving and doubling over the mesh (Rabenseifner 2004,
// "Optimization of Collective Reduction Operations", section 4), so that each replica moves about
// twice its values whatever the number of replicas. `piece_max` is the same on all.
std::unique_ptr<Collective> MakeCollective(std::unique_ptr<Mesh> mesh,
                                           size_t piece_max = kCollectivePieceMax);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_COLLECTIVE_H_
