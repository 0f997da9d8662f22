#include "worker/exec/norms.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

class NormsTest : public testing::Test {
 protected:
  NormsTest()
      : graph_(*model::BuildGraph(
            {.layers = 3, .hidden = 8, .heads = 2, .context = 4, .vocab = 16, .tied = true})) {
    const std::vector<int> cuts = graph_.BlockPoints();
    const int end = static_cast<int>(graph_.ops.size());
    ranges_ = {{0, cuts[0]}, {cuts[0], cuts[1]}, {cuts[1], end}};
  }

  // What `stage` would send, each parameter with its number plus a half as the sum of squares.
  std::vector<ParameterNorm> NormsFrom(const NormsLayout& layout, int stage) const {
    std::vector<ParameterNorm> norms;
    for (size_t s = stage; s < ranges_.size(); ++s) {
      for (const int p : layout.counted_by(static_cast<int>(s))) norms.push_back({p, p + 0.5});
    }
    return norms;
  }

  std::string Refusal(const std::vector<double>& values) const {
    const NormsLayout layout(graph_, ranges_);
    const absl::Status status = layout.FromDoubles(1, values).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const model::Graph graph_;
  std::vector<model::OpRange> ranges_;
};

TEST_F(NormsTest, EveryParameterIsCountedOnceAndTheTiedOneByTheFirstStage) {
  const NormsLayout layout(graph_, ranges_);
  std::vector<int> counted;
  for (int s = 0; s < 3; ++s) {
    counted.insert(counted.end(), layout.counted_by(s).begin(), layout.counted_by(s).end());
  }
  std::sort(counted.begin(), counted.end());
  std::vector<int> all(graph_.parameters.size());
  for (size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
  EXPECT_EQ(counted, all);
  const int tied = graph_.TiedParameters().at(0);
  EXPECT_THAT(layout.counted_by(0), testing::Contains(tied));
  EXPECT_THAT(layout.counted_by(2), testing::Not(testing::Contains(tied)));
}

TEST_F(NormsTest, RoundTripsAndKeepsWhatIsNotFinite) {
  const NormsLayout layout(graph_, ranges_);
  std::vector<ParameterNorm> norms = NormsFrom(layout, 1);
  norms[0].sum_of_squares = std::numeric_limits<double>::quiet_NaN();
  norms[1].sum_of_squares = std::numeric_limits<double>::infinity();
  const auto back = layout.FromDoubles(1, NormsLayout::ToDoubles(norms));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), norms.size());
  EXPECT_TRUE(std::isnan((*back)[0].sum_of_squares));
  EXPECT_TRUE(std::isinf((*back)[1].sum_of_squares));
  for (size_t i = 2; i < norms.size(); ++i) {
    EXPECT_EQ((*back)[i].parameter, norms[i].parameter);
    EXPECT_EQ((*back)[i].sum_of_squares, norms[i].sum_of_squares);
  }
}

TEST_F(NormsTest, TotalIsTheSameForEveryCut) {
  const auto norm_of = [](int p) { return 1.0 / (p + 3) + (p % 5 == 0 ? 1e8 : 0); };
  double expected = 0;
  for (size_t p = 0; p < graph_.parameters.size(); ++p) expected += norm_of(static_cast<int>(p));
  const int end = static_cast<int>(graph_.ops.size());
  const std::vector<std::vector<model::OpRange>> partitions = {{{0, end}}, ranges_};
  for (const std::vector<model::OpRange>& ranges : partitions) {
    const NormsLayout layout(graph_, ranges);
    std::vector<ParameterNorm> norms;
    for (size_t s = 0; s < ranges.size(); ++s) {
      for (const int p : layout.counted_by(static_cast<int>(s))) norms.push_back({p, norm_of(p)});
    }
    EXPECT_EQ(layout.Total(norms), expected);
  }
}

TEST_F(NormsTest, RefusesMissingDoubledAndForeignParameters) {
  const NormsLayout layout(graph_, ranges_);
  const std::vector<double> good = NormsLayout::ToDoubles(NormsFrom(layout, 1));
  std::vector<double> values(good.begin(), good.end() - 2);
  EXPECT_THAT(Refusal(values),
              HasSubstr("norms of stage 1: they end before parameter 'ln_f.bias'"));
  EXPECT_THAT(Refusal({}), HasSubstr("they end before parameter 'h.1.ln_1.weight'"));
  values = good;
  values.pop_back();
  EXPECT_THAT(Refusal(values), HasSubstr("they end before parameter"));
  values = good;
  values.insert(values.end(), {0, 1});
  EXPECT_THAT(Refusal(values), HasSubstr("expected"));
  values = good;
  values[2] = values[0];
  EXPECT_THAT(Refusal(values), HasSubstr("stands in the place of parameter 'h.1.ln_1.bias'"));
  values = good;
  values[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Refusal(values), HasSubstr("stands in the place of parameter"));
  values = good;
  values[1] = -1;
  EXPECT_THAT(Refusal(values), HasSubstr("the sum of squares is negative"));
}

}  // namespace
}  // namespace longhaul::worker
