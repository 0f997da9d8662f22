#include "daemon/host_resources.h"

#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

TEST(HostResources, ThisMachineHasSome) {
  const HostResources resources = ReadHostResources();
  EXPECT_FALSE(resources.host.empty());
  EXPECT_GE(resources.cores, 1);
  EXPECT_GT(resources.memory_bytes, 1 << 20);
}

TEST(HostResources, CgroupLimits) {
  EXPECT_EQ(ParseCgroupLimit("max\n"), -1);
  EXPECT_EQ(ParseCgroupLimit("1073741824\n"), 1 << 30);
  EXPECT_EQ(ParseCgroupLimit(""), -1);
  EXPECT_EQ(ParseCgroupLimit("-5"), -1);
  EXPECT_EQ(ParseCpuMax("max 100000\n"), 0);
  EXPECT_EQ(ParseCpuMax("200000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("50000 100000\n"), 1);
  EXPECT_EQ(ParseCpuMax("50000 0"), 0);
  EXPECT_EQ(ParseCpuMax(""), 0);
}

}  // namespace
}  // namespace longhaul::daemon
