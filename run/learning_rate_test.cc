#include <cmath>
#include <numbers>

#include "gtest/gtest.h"
#include "run/run_spec.h"

namespace longhaul::run {
namespace {

TrainSpec Schedule(int64_t steps, int64_t warmup, Decay decay, double minimum) {
  TrainSpec train;
  train.steps = steps;
  train.optimizer.learning_rate = 1e-3;
  train.schedule = {warmup, decay, minimum};
  return train;
}

TEST(LearningRate, WarmsUpLinearly) {
  for (const Decay decay : {Decay::kConstant, Decay::kCosine}) {
    const TrainSpec train = Schedule(2000, 100, decay, 1e-4);
    EXPECT_DOUBLE_EQ(LearningRate(train, 1), 1e-5);
    EXPECT_DOUBLE_EQ(LearningRate(train, 50), 5e-4);
    EXPECT_EQ(LearningRate(train, 100), 1e-3);
  }
}

TEST(LearningRate, ConstantStays) {
  const TrainSpec train = Schedule(10, 0, Decay::kConstant, 0);
  for (int64_t step = 1; step <= 12; ++step) EXPECT_EQ(LearningRate(train, step), 1e-3);
}

// Angles whose cosines are known in closed form: the decay takes 1200 steps here.
TEST(LearningRate, CosineAtKnownAngles) {
  const TrainSpec train = Schedule(1300, 100, Decay::kCosine, 1e-4);
  const auto expected = [](double cosine) { return 1e-4 + 0.5 * (1 + cosine) * 9e-4; };
  EXPECT_DOUBLE_EQ(LearningRate(train, 300), expected(std::sqrt(3.0) / 2));
  EXPECT_DOUBLE_EQ(LearningRate(train, 400), expected(std::numbers::sqrt2 / 2));
  EXPECT_DOUBLE_EQ(LearningRate(train, 500), expected(0.5));
  EXPECT_DOUBLE_EQ(LearningRate(train, 700), expected(0));
  EXPECT_DOUBLE_EQ(LearningRate(train, 900), expected(-0.5));
  EXPECT_DOUBLE_EQ(LearningRate(train, 1000), expected(-std::numbers::sqrt2 / 2));
  EXPECT_EQ(LearningRate(train, 1300), 1e-4);
  EXPECT_EQ(LearningRate(train, 1301), 1e-4);
}

TEST(LearningRate, CosineAgreesWithTheLibraryAndFalls) {
  const TrainSpec train = Schedule(2000, 100, Decay::kCosine, 0);
  double previous = LearningRate(train, 100);
  for (int64_t step = 101; step <= 2000; ++step) {
    const double progress = (step - 100) / 1900.0;
    const double expected = 1e-3 * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    const double rate = LearningRate(train, step);
    EXPECT_NEAR(rate, expected, 1e-18) << step;
    EXPECT_LT(rate, previous);
    previous = rate;
  }
}

TEST(LearningRate, WarmUpMayTakeTheWholeRun) {
  const TrainSpec train = Schedule(10, 10, Decay::kCosine, 0);
  EXPECT_EQ(LearningRate(train, 10), 1e-3);
}

}  // namespace
}  // namespace longhaul::run
