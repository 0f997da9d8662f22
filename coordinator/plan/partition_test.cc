#include "coordinator/plan/partition.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

// Small whole numbers, so that ties are common and sums exact.
struct Instance {
  int units = 0;
  int stages = 0;
  std::vector<double> unit_seconds;
  std::vector<double> slowness;  // by stage
  std::vector<int> units_max;    // by stage: what its memory holds
  std::vector<double> cut_bytes;

  double Seconds(int stage, int begin, int end) const {
    double sum = 0;
    for (int unit = begin; unit < end; ++unit) sum += unit_seconds[unit];
    return sum * slowness[stage];
  }
  bool Fits(int stage, int begin, int end) const { return end - begin <= units_max[stage]; }
};

Instance RandomInstance(uint32_t number) {
  uint32_t drawn = 0;
  const auto draw = [&](int min, int max) {
    const uint32_t bits = Philox4x32({drawn++, number, 0, 0}, {20, 26})[0];
    return min + static_cast<int>(bits % static_cast<uint32_t>(max - min + 1));
  };
  Instance instance;
  instance.units = draw(1, 9);
  instance.stages = draw(1, instance.units);
  for (int unit = 0; unit < instance.units; ++unit) {
    instance.unit_seconds.push_back(draw(0, 6));
    instance.cut_bytes.push_back(draw(1, 3));
  }
  for (int stage = 0; stage < instance.stages; ++stage) {
    instance.slowness.push_back(draw(1, 3));
    instance.units_max.push_back(draw(1, 5));
  }
  return instance;
}

std::optional<std::vector<int>> Solve(const Instance& instance) {
  const auto seconds = [&](int stage, int begin, int end) {
    return instance.Seconds(stage, begin, end);
  };
  const auto fits = [&](int stage, int begin, int end) { return instance.Fits(stage, begin, end); };
  const auto cut_bytes = [&](int unit) { return instance.cut_bytes[unit]; };
  return MinimizeSlowestStage({.units = instance.units,
                               .stages = instance.stages,
                               .seconds = seconds,
                               .fits = fits,
                               .cut_bytes = cut_bytes});
}

// Every partition, compared by (slowest stage, bytes, positions).
class Exhaustive {
 public:
  explicit Exhaustive(const Instance& instance) : instance_(instance) { Extend({0}, 0, 0); }
  const std::optional<std::tuple<double, double, std::vector<int>>>& best() const { return best_; }

 private:
  void Extend(std::vector<int> bounds, double slowest, double bytes) {
    const int stage = static_cast<int>(bounds.size()) - 1;
    const int begin = bounds.back();
    if (stage == instance_.stages) {
      if (begin != instance_.units) return;
      std::tuple<double, double, std::vector<int>> found(slowest, bytes, bounds);
      if (!best_.has_value() || found < *best_) best_ = found;
      return;
    }
    for (int end = begin + 1; end <= instance_.units; ++end) {
      if (!instance_.Fits(stage, begin, end)) continue;
      bounds.push_back(end);
      Extend(
          bounds, std::max(slowest, instance_.Seconds(stage, begin, end)),
          bytes + (stage + 1 < instance_.stages && end < instance_.units ? instance_.cut_bytes[end]
                                                                         : 0));
      bounds.pop_back();
    }
  }

  const Instance& instance_;
  std::optional<std::tuple<double, double, std::vector<int>>> best_;
};

TEST(MinimizeSlowestStage, EqualsExhaustiveSearch) {
  int feasible = 0;
  for (uint32_t number = 0; number < 4000; ++number) {
    const Instance instance = RandomInstance(number);
    const Exhaustive exhaustive(instance);
    const std::optional<std::vector<int>> bounds = Solve(instance);
    ASSERT_EQ(bounds.has_value(), exhaustive.best().has_value()) << "instance " << number;
    if (!bounds.has_value()) continue;
    ++feasible;
    ASSERT_EQ(*bounds, std::get<2>(*exhaustive.best())) << "instance " << number;
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_LT(feasible, 3900);
}

TEST(MinimizeSlowestStage, EqualUnitsOnEqualStagesGoLeftmost) {
  const Instance instance = {
      7, 4, std::vector<double>(7, 0.1), {1, 1, 1, 1}, {7, 7, 7, 7}, std::vector<double>(7, 4096)};
  EXPECT_EQ(Solve(instance), (std::vector<int>{0, 1, 3, 5, 7}));
}

TEST(MinimizeSlowestStage, MoreStagesThanUnitsHaveNoPartition) {
  Instance instance = {1, 2, {1}, {1, 1}, {1, 1}, {1}};
  EXPECT_EQ(Solve(instance), std::nullopt);
  instance.stages = 0;
  EXPECT_EQ(Solve(instance), std::nullopt);
}

}  // namespace
}  // namespace longhaul::coordinator
