// Sums and broadcasts among the replicas of a stage.
#ifndef LONGHAUL_WORKER_COMM_COLLECTIVE_H_
#define LONGHAUL_WORKER_COMM_COLLECTIVE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/comm/mesh.h"

namespace longhaul::worker {

// Every replica makes the same calls with the same sizes in the same order; one at a time, on any
// thread. Results have the same bits on every replica, and the same ones each time: the order of
// the additions is fixed by the ranks alone (see AllReduceSum). An error names the peer; the
// collective is then of no more use. A call that cannot be finished, because a peer is dead or
// never comes to it, ends with an error by its deadline.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replaces `values` by their sum over all ranks, element by element. Let p be the largest power
  // of two that is at most size(): first rank r + p is added to rank r, where there is one; then
  // the p sums are added as a binary tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)).
  virtual absl::Status AllReduceSum(absl::Span<float> values, absl::Time deadline) = 0;
  virtual absl::Status SumDoubles(absl::Span<double> values, absl::Time deadline) = 0;
  // Replaces `values` by those of rank 0.
  virtual absl::Status Broadcast(absl::Span<float> values, absl::Time deadline) = 0;
  virtual absl::Status BroadcastDoubles(absl::Span<double> values, absl::Time deadline) = 0;

  // Present and future calls return `reason` soon. Thread-safe; the first reason stays.
  virtual void Cancel(const absl::Status& reason) = 0;
};

// Adds in the tree's order by recursive halving and doubling over the mesh (Rabenseifner 2004,
// "Optimization of Collective Reduction Operations", section 4), so that each replica moves about
// twice its values whatever the number of replicas.
std::unique_ptr<Collective> MakeCollective(std::unique_ptr<Mesh> mesh);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_COLLECTIVE_H_
