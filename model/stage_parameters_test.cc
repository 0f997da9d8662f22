#include "model/stage_parameters.h"

#include <algorithm>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph FourBlocks(bool tied) {
  ModelSpec spec{.layers = 4, .hidden = 8, .heads = 2, .context = 8, .vocab = 11, .tied = tied};
  return *BuildGraph(spec);
}

// Each block but the first may begin a stage; `set` says which do.
std::vector<OpRange> Cut(const Graph& graph, int set) {
  std::vector<int> ends;
  for (int block = 0; block < 3; ++block) {
    if ((set >> block & 1) != 0) ends.push_back(graph.BlockPoints()[block]);
  }
  ends.push_back(static_cast<int>(graph.ops.size()));
  std::vector<OpRange> ranges;
  for (const int end : ends) ranges.push_back({ranges.empty() ? 0 : ranges.back().end, end});
  return ranges;
}

TEST(OwnedParameters, CoverTheModelOnceForEveryPartition) {
  for (const bool tied : {false, true}) {
    const Graph graph = FourBlocks(tied);
    for (int set = 0; set < 8; ++set) {
      const std::vector<OpRange> ranges = Cut(graph, set);
      const std::vector<std::vector<int>> owned = OwnedParameters(graph, ranges);
      ASSERT_EQ(owned.size(), ranges.size());
      std::map<std::string, size_t> owner;
      for (size_t stage = 0; stage < owned.size(); ++stage) {
        EXPECT_TRUE(std::is_sorted(owned[stage].begin(), owned[stage].end()));
        for (const int parameter : owned[stage]) {
          EXPECT_TRUE(owner.emplace(graph.parameters[parameter].name, stage).second)
              << graph.parameters[parameter].name << " has two owners";
        }
      }
      EXPECT_EQ(owner.size(), graph.parameters.size());
      EXPECT_EQ(owner["wte"], 0u);
      EXPECT_EQ(owner["ln_f.weight"], ranges.size() - 1);
      EXPECT_EQ(owner.contains("head.weight"), !tied);
      if (!tied) {
        EXPECT_EQ(owner["head.weight"], ranges.size() - 1);
      }
    }
  }
}

TEST(ParametersTiedAcross, IsTheTableThatBothEndsUse) {
  const Graph tied = FourBlocks(true), untied = FourBlocks(false);
  EXPECT_THAT(ParametersTiedAcross(tied, Cut(tied, 0)), IsEmpty());
  for (int set = 1; set < 8; ++set) {
    EXPECT_THAT(ParametersTiedAcross(tied, Cut(tied, set)), ElementsAre(0)) << set;
    EXPECT_THAT(ParametersTiedAcross(untied, Cut(untied, set)), IsEmpty()) << set;
  }
}

}  // namespace
}  // namespace longhaul::model
