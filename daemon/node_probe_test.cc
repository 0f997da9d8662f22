#include "daemon/node_probe.h"

#include "compute/backend/backend.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(MeasureNode, GivesRatesOfThisMachine) {
  const auto measures = MeasureNode(1, 0, RealClock());
  ASSERT_TRUE(measures.ok()) << measures.status();
  EXPECT_EQ(measures->numeric_class, compute::MakeCpuBackend(1)->numeric_class());
  // Between a hundredth of an old core and more than any has.
  EXPECT_GT(measures->flops_per_second, 1e7);
  EXPECT_LT(measures->flops_per_second, 1e13);
  EXPECT_GT(measures->bytes_per_second, 1e7);
  EXPECT_LT(measures->bytes_per_second, 1e13);
}

TEST(CopyBytesEach, IsBoundedForAllThreadsTogether) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(CopyBytesEach(1, 0), size_t{16} << 20);
  EXPECT_EQ(CopyBytesEach(16, 0), size_t{16} << 20);
  for (const int threads : {32, 64, 1000}) {
    EXPECT_LE(2 * CopyBytesEach(threads, 0) * static_cast<size_t>(threads), size_t{512} << 20);
    EXPECT_GE(2 * CopyBytesEach(threads, 0) * static_cast<size_t>(threads), size_t{511} << 20);
  }
  // A small container.
  EXPECT_EQ(CopyBytesEach(4, 256 * kMiB), size_t{4} << 20);
  EXPECT_GT(CopyBytesEach(1024, kMiB), 0u);
}

}  // namespace
}  // namespace longhaul::daemon
