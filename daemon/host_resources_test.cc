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

TEST(HostResources, ThisProcessHoldsSomeMemory) {
  EXPECT_GT(OwnResidentBytes(), 1 << 20);
  EXPECT_LT(OwnResidentBytes(), int64_t{1} << 40);
}

TEST(HostResources, CgroupLimits) {
  EXPECT_EQ(ParseCgroupLimit("max\n"), -1);
  EXPECT_EQ(ParseCgroupLimit("1073741824\n"), 1 << 30);
  EXPECT_EQ(ParseCgroupLimit(""), -1);
  EXPECT_EQ(ParseCgroupLimit("-5"), -1);
  EXPECT_EQ(CgroupMemoryLeft("max\n", "5\n", ""), -1);
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "300\n", ""), 700);
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "2000\n", ""), 0);
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "", ""), 1000);
  // A file of 800 bytes was read.
  const char stat[] = "anon 100\nfile 850\ninactive_file 800\nactive_file 50\n";
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "950\n", stat), 850);
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "700\n", stat), 1000);
  EXPECT_EQ(CgroupMemoryLeft("1000\n", "950\n", "inactive_file much\n"), 50);
  EXPECT_EQ(ParseCpuMax("max 100000\n"), 0);
  EXPECT_EQ(ParseCpuMax("200000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("50000 100000\n"), 1);
  EXPECT_EQ(ParseCpuMax("50000 0"), 0);
  EXPECT_EQ(ParseCpuMax(""), 0);
}

}  // namespace
}  // namespace longhaul::daemon
