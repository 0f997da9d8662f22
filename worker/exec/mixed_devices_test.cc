// Whole steps of pipelines whose stages are on processors and on (emulated) cards.
#include <bit>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "compute/testing/op_testing.h"
#include "gtest/gtest.h"
#include "worker/exec/testing/executor_cluster.h"

namespace longhaul::worker {
namespace {

constexpr int kSteps = 3;

// Norm-wise, over the weights of all parameters; not over moments, whose rounding noise Adam
// divides by itself where gradients are zero, nor over the biases of keys, whose gradients are.
double WeightsDifference(const StateBits& actual, const StateBits& expected) {
  double difference = 0, norm = 0;
  for (const auto& [name, bits] : expected) {
    if (name.find("c_attn.bias") != std::string::npos) continue;
    for (size_t i = 0; i < bits.size() / 3; ++i) {
      const double value = std::bit_cast<float>(bits[i]);
      const double error = std::bit_cast<float>(actual.at(name)[i]) - value;
      difference += error * error;
      norm += value * value;
    }
  }
  return std::sqrt(difference / norm);
}

std::vector<StepResult> LastSteps(ExecutorCluster& cluster) {
  std::vector<StepResult> last;
  for (const auto& of_group : cluster.RunSteps(1, kSteps)) {
    EXPECT_TRUE(of_group.back().ok()) << of_group.back().status();
    if (of_group.back().ok()) last.push_back(*of_group.back());
  }
  return last;
}

class MixedDevices : public ::testing::TestWithParam<std::vector<bool>> {
 protected:
  void SetUp() override {
    if (!compute::kHasTestCuda) GTEST_SKIP() << "ThreadSanitizer does not know emulated cards";
  }
  static ClusterOptions Options(const std::string& codec) {
    ClusterOptions options;
    options.stages = 3;
    options.codec = codec;
    options.cards = GetParam();
    return options;
  }
};

TEST_P(MixedDevices, LosslessLinksTrainToTheWeightsOfTheDefinition) {
  for (const char* const codec : {"none", "zstd"}) {
    ReferenceRun reference(Options(codec));
    ExecutorCluster cluster(Options(codec));
    const std::vector<StepResult> last = LastSteps(cluster);
    ASSERT_EQ(last.size(), 3u);
    ReferenceRun::Step expected;
    for (int step = 1; step <= kSteps; ++step) expected = reference.RunStep(step);
    EXPECT_LT(WeightsDifference(cluster.State(), reference.State()), 1e-5);
    EXPECT_NEAR(last[2].loss_sum / expected.loss_sum, 1, 1e-5);
    for (int stage = 0; stage < 3; ++stage) {
      EXPECT_TRUE(last[stage].applied);
      EXPECT_NEAR(last[stage].gradient_norm / expected.gradient_norm, 1, 1e-4);
      EXPECT_GT(last[stage].timings.compute, 0);
      EXPECT_GE(last[stage].timings.total, last[stage].timings.wait);
    }
    const auto evaluations = cluster.Evaluate(kSteps);
    ASSERT_TRUE(evaluations[2].ok()) << evaluations[2].status();
    EXPECT_NEAR(evaluations[2]->loss_sum / reference.ValidationLossSum(), 1, 1e-5);
  }
}

// Rounding differs by a quantum where the values differ by their last bit.
TEST_P(MixedDevices, LossyLinksTrainAsBetweenProcessors) {
  for (const auto& [codec, tolerance] : {std::pair("bf16", 1e-3), std::pair("int8", 1e-2)}) {
    ClusterOptions processors = Options(codec);
    processors.cards = {};
    ExecutorCluster cluster(Options(codec)), expected(processors);
    const std::vector<StepResult> last = LastSteps(cluster), expected_last = LastSteps(expected);
    ASSERT_EQ(last.size(), 3u);
    EXPECT_LT(WeightsDifference(cluster.State(), expected.State()), tolerance) << codec;
    EXPECT_NEAR(last[2].loss_sum / expected_last[2].loss_sum, 1, tolerance) << codec;
  }
}

TEST_P(MixedDevices, CardsMayComputeInBFloat16) {
  ClusterOptions options = Options("bf16");
  options.bfloat16 = true;
  ReferenceRun reference(options);
  ExecutorCluster cluster(options);
  const std::vector<StepResult> last = LastSteps(cluster);
  ASSERT_EQ(last.size(), 3u);
  ReferenceRun::Step expected;
  for (int step = 1; step <= kSteps; ++step) expected = reference.RunStep(step);
  EXPECT_NEAR(last[2].loss_sum / expected.loss_sum, 1, 0.01);
  EXPECT_LT(WeightsDifference(cluster.State(), reference.State()), 0.05);
}

INSTANTIATE_TEST_SUITE_P(All, MixedDevices,
                         ::testing::Values(std::vector<bool>{true, false, true},
                                           std::vector<bool>{false, true, false},
                                           std::vector<bool>{true, true, true}));

}  // namespace
}  // namespace longhaul::worker
