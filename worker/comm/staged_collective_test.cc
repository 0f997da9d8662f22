#include "worker/comm/staged_collective.h"

#include <utility>

#include "gtest/gtest.h"
#include "worker/comm/testing/collective_contract.h"
#include "worker/comm/testing/in_process_mesh.h"
#include "worker/comm/testing/staged_group.h"

namespace longhaul::worker {
namespace {

std::unique_ptr<CollectiveGroup> StagedOnProcessors(int size) {
  return std::make_unique<StagedGroup>(size, [](int rank) { return compute::MakeCpuBackend(1); });
}

INSTANTIATE_TEST_SUITE_P(Staged, CollectiveTest,
                         testing::Combine(testing::Values(CollectiveCase{"staged on processors",
                                                                         &StagedOnProcessors}),
                                          testing::Range(2, 6)));

}  // namespace
}  // namespace longhaul::worker
