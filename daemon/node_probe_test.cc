#include "daemon/node_probe.h"

#include "compute/backend/backend.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(MeasureNode, GivesRatesOfThisMachine) {
  const auto measures = MeasureNode(1, RealClock());
  ASSERT_TRUE(measures.ok()) << measures.status();
  EXPECT_EQ(measures->numeric_class, compute::MakeCpuBackend(1)->numeric_class());
  // Between a hundredth of an old core and more than any has.
  EXPECT_GT(measures->flops_per_second, 1e7);
  EXPECT_LT(measures->flops_per_second, 1e13);
  EXPECT_GT(measures->bytes_per_second, 1e7);
  EXPECT_LT(measures->bytes_per_second, 1e13);
}

}  // namespace
}  // namespace longhaul::daemon
