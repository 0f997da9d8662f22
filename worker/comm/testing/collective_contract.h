// What every Collective keeps to, as one test body: collective_contract.cc is a source of each test
// that instantiates it.
#ifndef LONGHAUL_WORKER_COMM_TESTING_COLLECTIVE_CONTRACT_H_
#define LONGHAUL_WORKER_COMM_TESTING_COLLECTIVE_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "gtest/gtest.h"
#include "worker/comm/collective.h"
#include "worker/comm/mesh.h"

namespace longhaul::worker {

// Calls on a thread for each rank and joins them.
void OnThreads(int count, const std::function<void(int rank)>& work);

// The replicas of a stage; each rank's calls are one thread's.
class CollectiveGroup {
 public:
  virtual ~CollectiveGroup() = default;
  virtual Collective& Of(int rank) = 0;
  // As if the rank's process died.
  virtual void Kill(int rank) = 0;
  // Puts floats where the rank's collective takes them; they stay as long as the group.
  virtual absl::Span<float> Put(int rank, const std::vector<float>& values) = 0;
  virtual std::vector<float> Get(int rank, absl::Span<const float> values) = 0;
};

// Each rank's values are in the memory of its backend.
class BackendGroup : public CollectiveGroup {
 public:
  absl::Span<float> Put(int rank, const std::vector<float>& values) override;
  std::vector<float> Get(int rank, absl::Span<const float> values) override;

 protected:
  std::vector<std::unique_ptr<compute::Backend>> backends_;  // by rank

 private:
  std::vector<std::vector<std::unique_ptr<compute::Buffer>>> buffers_ =
      std::vector<std::vector<std::unique_ptr<compute::Buffer>>>(8);  // by rank
};

// Collectives over meshes on processors' backends.
class MeshGroup : public BackendGroup {
 public:
  // `piece_max`: of MakeCollective.
  MeshGroup(std::vector<std::unique_ptr<Mesh>> meshes, size_t piece_max);
  Collective& Of(int rank) override { return *collectives_[rank]; }
  void Kill(int rank) override { collectives_[rank].reset(); }

 private:
  std::vector<std::unique_ptr<Collective>> collectives_;
};

struct CollectiveCase {
  std::string name;
  std::function<std::unique_ptr<CollectiveGroup>(int size)> make;
  bool in_tree_order = true;  // sums have the bits of the contract's tree
};
// For messages of GoogleTest.
inline void PrintTo(const CollectiveCase& value, std::ostream* out) { *out << value.name; }

class CollectiveTest : public testing::TestWithParam<std::tuple<CollectiveCase, int>> {
 protected:
  void SetUp() override;
  // Of every rank: calls on a thread each.
  std::vector<absl::Status> All(const std::function<absl::Status(int rank)>& call);

  int size_ = 0;
  std::unique_ptr<CollectiveGroup> group_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TESTING_COLLECTIVE_CONTRACT_H_
