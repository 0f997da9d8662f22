#include "coordinator/plan/links.h"

#include <limits>
#include <vector>

#include "coordinator/plan/testing.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

Links LinksOf(const std::vector<LinkProfile>& profiles) { return Links(profiles); }

TEST(Links, AssumesByPlaceWhatNobodyMeasured) {
  const Links links = LinksOf({});
  NodeProfile a = SomeNode("a", "east"), b = SomeNode("b", "east"), c = SomeNode("c", "west");
  EXPECT_EQ(links.Between(a, b).latency_seconds, kLanLink.latency_seconds);
  EXPECT_FALSE(links.Between(a, b).crosses_sites);
  EXPECT_EQ(links.Between(a, c).bytes_per_second, kWanLink.bytes_per_second);
  EXPECT_TRUE(links.Between(a, c).crosses_sites);
  c.host = a.host;
  EXPECT_EQ(links.Between(a, c).latency_seconds, kHostLink.latency_seconds);
  EXPECT_TRUE(links.Between(a, c).crosses_sites);
}

TEST(Links, MeasuredOneWayHoldsBothWaysUnlessTheOtherIsMeasuredToo) {
  const NodeProfile a = SomeNode("a", "east"), c = SomeNode("c", "west");
  const LinkProfile there = {"east", "west", 0.05, 1e6}, back = {"west", "east", 0.07, 2e6};
  const Links one_way = LinksOf({there});
  EXPECT_EQ(one_way.Between(c, a).latency_seconds, 0.05);
  const Links both = LinksOf({there, back});
  EXPECT_EQ(both.Between(a, c).bytes_per_second, 1e6);
  EXPECT_EQ(both.Between(c, a).bytes_per_second, 2e6);
}

TEST(Links, UnusableNumbersAreNotMeasurements) {
  const NodeProfile a = SomeNode("a", "east"), c = SomeNode("c", "west");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Links links = LinksOf({{"east", "west", nan, -1}, {"east", "west", 0.001, 0}});
  EXPECT_EQ(links.Between(a, c).latency_seconds, 0.001);
  EXPECT_EQ(links.Between(a, c).bytes_per_second, kWanLink.bytes_per_second);
}

TEST(Links, OfTwoMeasurementsTheWorseCounts) {
  const NodeProfile a = SomeNode("a", "east"), c = SomeNode("c", "west");
  const LinkProfile first = {"east", "west", 0.01, 1e6}, second = {"east", "west", 0.02, 2e6};
  for (const Links& links : {LinksOf({first, second}), LinksOf({second, first})}) {
    EXPECT_EQ(links.Between(a, c).latency_seconds, 0.02);
    EXPECT_EQ(links.Between(a, c).bytes_per_second, 1e6);
  }
}

}  // namespace
}  // namespace longhaul::coordinator
