#include "worker/host/divergence.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

class DivergenceTest : public testing::Test {
 protected:
  static constexpr int64_t kSteps = 40;

  DivergenceTest() {
    const auto [begin, end] = Whole();
    const compute::StageOptions options{{begin, end}, 1, 1, false};
    stage_ = *compute::Stage<float>::Create(graph_, options, *backend_, 1);
    Watch(0);
  }

  model::OpRange Whole() const { return {0, static_cast<int>(graph_.ops.size())}; }
  void Watch(int64_t start_step) {
    watch_.emplace(graph_, *stage_, start_step, kSteps);
    step_ = start_step;
  }

  absl::Span<float> Weights(const std::string& name) {
    for (const auto& parameter : stage_->parameters()) {
      if (graph_.parameters[parameter.index].name == name) return parameter.weights;
    }
    ADD_FAILURE() << name;
    return {};
  }
  // The next step as the executor would run it.
  std::optional<Divergence> Step(bool applied, int64_t tokens = 8) {
    watch_->BeforeStep();
    const std::vector<int32_t> ids(static_cast<size_t>(graph_.context), 1);
    double loss = 0;
    compute::ForwardPass pass;
    pass.tokens = ids;
    pass.targets = ids;
    pass.loss_sum = &loss;
    EXPECT_TRUE(stage_->ZeroGradients().ok());
    EXPECT_TRUE(stage_->Forward(pass).ok());
    EXPECT_TRUE(stage_->Backward(0).ok());
    StepResult result;
    result.step = ++step_;
    result.applied = applied;
    result.tokens = tokens;
    return *watch_->AfterStep(result);
  }
  std::optional<Divergence> Skip(int times) {
    std::optional<Divergence> found;
    for (int i = 0; i < times && !found; ++i) found = Step(false);
    return found;
  }

  model::Graph graph_ = *model::BuildGraph(TestSpec("r").model);
  std::unique_ptr<compute::Backend> backend_ = compute::MakeCpuBackend(1);
  std::unique_ptr<compute::Stage<float>> stage_;
  std::optional<DivergenceWatch> watch_;
  int64_t step_ = 0;
};

TEST_F(DivergenceTest, ABadBatchNowAndThenIsNone) {
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(Skip(kSkippedStepsMax - 1), std::nullopt);
    EXPECT_EQ(Step(true), std::nullopt);
  }
}

TEST_F(DivergenceTest, StepsWithoutTargetsNeitherCountNorExcuse) {
  for (int i = 0; i < 2 * kSkippedStepsMax; ++i) EXPECT_EQ(Step(false, 0), std::nullopt);
  EXPECT_EQ(Skip(kSkippedStepsMax - 1), std::nullopt);
  EXPECT_EQ(Step(false, 0), std::nullopt);
  EXPECT_NE(Step(false), std::nullopt);
}

TEST_F(DivergenceTest, NamesTheFirstOperatorWhoseOutputIsNotFinite) {
  const absl::Span<float> weights = Weights("h.1.mlp.fc.weight");
  for (size_t i = 0; i < weights.size(); i += 5) weights[i] = 3e38F;
  Step(true);
  const std::optional<Divergence> found = Skip(kSkippedStepsMax);
  ASSERT_NE(found, std::nullopt);
  EXPECT_EQ(step_, 1 + kSkippedStepsMax);
  EXPECT_THAT(found->text, HasSubstr("10 steps in a row, 2 to 11"));
  EXPECT_THAT(found->text, HasSubstr("the output of operator 'h.1.mlp.fc'"));
  EXPECT_GE(found->order, 0);
}

TEST_F(DivergenceTest, AParameterEndsTheRunAtOnce) {
  Step(true);
  Weights("h.0.ln_1.bias")[1] = std::numeric_limits<float>::quiet_NaN();
  const std::optional<Divergence> found = Step(false);
  ASSERT_NE(found, std::nullopt);
  EXPECT_LT(found->order, 0);
  EXPECT_THAT(found->text, HasSubstr("parameter 'h.0.ln_1.bias'"));
}

TEST_F(DivergenceTest, ARunWhoseStepsWereAllSkippedHasNotTrained) {
  for (int64_t step = 1; step < kSteps; ++step) Step(false, 0);
  EXPECT_THAT(Step(false, 0)->text, HasSubstr("all 40 steps were skipped"));
  Watch(kSteps - 1);  // resumed: what it did before is not known
  EXPECT_EQ(Step(false, 0), std::nullopt);
}

}  // namespace
}  // namespace longhaul::worker
