#include "worker/comm/nccl_library.h"

#include "gtest/gtest.h"

namespace longhaul::worker {
namespace {

TEST(NcclLibrary, TheInstalledOneHasWhatThisBuildNeeds) {
  const auto nccl = LoadNccl();
  if (absl::IsFailedPrecondition(nccl.status())) GTEST_SKIP() << nccl.status();
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_GE(nccl->version, NCCL_VERSION_CODE);
  EXPECT_STREQ(nccl->get_error_string(ncclSuccess), "no error");
}

TEST(NcclLibrary, VersionsAreWritten) { EXPECT_EQ(NcclVersionText(22809), "2.28.9"); }

}  // namespace
}  // namespace longhaul::worker
