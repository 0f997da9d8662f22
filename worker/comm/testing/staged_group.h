// Replicas that sum in their backends' memory by way of their hosts; the last one is on a processor
// and calls its mesh's collective itself.
#ifndef LONGHAUL_WORKER_COMM_TESTING_STAGED_GROUP_H_
#define LONGHAUL_WORKER_COMM_TESTING_STAGED_GROUP_H_

#include <functional>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "worker/comm/staged_collective.h"
#include "worker/comm/testing/collective_contract.h"
#include "worker/comm/testing/in_process_mesh.h"

namespace longhaul::worker {

class StagedGroup : public BackendGroup {
 public:
  // Pieces so small that most sums take several.
  static constexpr size_t kPiece = 48;

  StagedGroup(int size,
              const std::function<std::unique_ptr<compute::Backend>(int rank)>& make_backend) {
    auto meshes = MakeInProcessMeshes(size, RealClock());
    for (int rank = 0; rank < size; ++rank) {
      Replica& replica = replicas_.emplace_back();
      replica.host = MakeCollective(std::move(meshes[rank]), kPiece);
      const bool processor = rank == size - 1;
      backends_.push_back(processor ? compute::MakeCpuBackend(1) : make_backend(rank));
      if (processor) continue;
      auto staged = MakeStagedCollective(*replica.host, *backends_.back(), RealClock(), kPiece);
      LH_CHECK(staged.ok(), staged.status().ToString());
      replica.staged = *std::move(staged);
      LH_CHECK(replica.staged->on_device());
    }
  }
  ~StagedGroup() override { replicas_.clear(); }

  Collective& Of(int rank) override {
    Replica& replica = replicas_[rank];
    return replica.staged != nullptr ? *replica.staged : *replica.host;
  }
  void Kill(int rank) override {
    replicas_[rank].staged.reset();
    replicas_[rank].host.reset();
  }

 private:
  struct Replica {
    std::unique_ptr<Collective> host, staged;
  };
  std::vector<Replica> replicas_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_STAGED_GROUP_H_
