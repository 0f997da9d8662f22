#include "run/nearest.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace longhaul::run {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);  // Levenshtein's example
  EXPECT_EQ(EditDistance("micro_bach", "micro_batch"), 1u);
  EXPECT_EQ(EditDistance("sedd", "seed"), 1u);
  EXPECT_EQ(EditDistance("esed", "seed"), 1u);  // neighbours swapped
  EXPECT_EQ(EditDistance("ca", "abc"), 3u);     // not 2: no character is edited twice
}

TEST(Nearest, FindsTheFirstOfTheNearest) {
  const std::vector<std::string> known = {"steps", "global_batch", "micro_batch", "seed"};
  EXPECT_EQ(Nearest("micro_bach", known), "micro_batch");
  EXPECT_EQ(Nearest("batch", known), "steps");
  EXPECT_EQ(Nearest(std::string(1 << 20, 'x'), known), "steps");
}

TEST(Nearest, IsNearOnlyWhatMayBeMisspelt) {
  EXPECT_TRUE(IsNear("generat", "generate"));
  EXPECT_TRUE(IsNear("sart", "start"));
  EXPECT_TRUE(IsNear("warm_up_steps", "warmup_steps"));
  EXPECT_TRUE(IsNear("dn", "down"));
  EXPECT_FALSE(IsNear("frobnicate", "generate"));
  EXPECT_FALSE(IsNear("foo", "log"));
  EXPECT_FALSE(IsNear(std::string(1 << 20, 'x'), "steps"));
}

}  // namespace
}  // namespace longhaul::run
