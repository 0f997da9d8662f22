#include "compute/optim/adamw.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class AdamWTest : public ::testing::Test {};
TYPED_TEST_SUITE(AdamWTest, ElementTypes);

// One step of everything that a parameter has.
template <typename T>
struct Parameter {
  Parameter(Backend& backend, const Values& start)
      : weights(backend, start),
        first(backend, Values(start.size(), 0)),
        second(backend, Values(start.size(), 0)),
        working(GuardedBuffer<T>::Poisoned(backend, start.size())) {}
  AdamWTensor<T> With(GuardedBuffer<Wide<T>>& gradient, bool decays) {
    return {gradient.span(), weights.span(), first.span(), second.span(), working.span(), decays};
  }

  GuardedBuffer<Wide<T>> weights, first, second;
  GuardedBuffer<T> working;
};

TYPED_TEST(AdamWTest, Golden) {
  constexpr double kTolerance = kGoldenTolerance<Wide<TypeParam>>;
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("adamw")) {
      SCOPED_TRACE(golden.name);
      Parameter<TypeParam> parameter(*backend, golden.tensor("weights"));
      for (int64_t step = 1; step <= golden.size("steps"); ++step) {
        const std::string number = absl::StrCat(" ", step);
        GuardedBuffer<Wide<TypeParam>> gradient(*backend, golden.tensor("gradient" + number));
        const AdamWStep options{
            .learning_rate = golden.tensor("learning_rates")[static_cast<size_t>(step - 1)],
            .beta1 = golden.number("beta1"),
            .beta2 = golden.number("beta2"),
            .epsilon = golden.number("epsilon"),
            .weight_decay = golden.number("weight_decay"),
            .gradient_scale = golden.number("gradient_scale"),
            .step = step};
        ASSERT_TRUE(AdamW<TypeParam>(*backend, options, {parameter.With(gradient, true)}).ok());
        const Values weights = parameter.weights.Read();
        EXPECT_LE(RelativeError(weights, golden.tensor("weights" + number)), kTolerance);
        EXPECT_LE(RelativeError(parameter.first.Read(), golden.tensor("first_moment" + number)),
                  kTolerance);
        EXPECT_LE(RelativeError(parameter.second.Read(), golden.tensor("second_moment" + number)),
                  kTolerance);
        EXPECT_EQ(parameter.working.Read(), Rounded<TypeParam>(weights));
      }
    }
  }
}

// Many tensors, some longer than what a block of a card takes, are as each alone.
TYPED_TEST(AdamWTest, ManyTensors) {
  const AdamWStep step{.learning_rate = 0.1, .weight_decay = 0.5, .step = 2};
  for (const auto& backend : TestBackends<TypeParam>()) {
    std::vector<Parameter<TypeParam>> together, alone;
    std::vector<GuardedBuffer<Wide<TypeParam>>> gradients;
    for (uint32_t i = 0; i < 101; ++i) {
      const int64_t elements = i % 40 == 7 ? 20011 : i;
      const Values start = TestValues(elements, i);
      together.emplace_back(*backend, start);
      alone.emplace_back(*backend, start);
      gradients.emplace_back(*backend, TestValues(elements, 1000 + i));
    }
    std::vector<AdamWTensor<TypeParam>> tensors;
    for (size_t i = 0; i < together.size(); ++i) {
      tensors.push_back(together[i].With(gradients[i], i % 3 == 0));
      ASSERT_TRUE(AdamW<TypeParam>(*backend, step, {alone[i].With(gradients[i], i % 3 == 0)}).ok());
    }
    ASSERT_TRUE(AdamW<TypeParam>(*backend, step, tensors).ok());
    for (size_t i = 0; i < together.size(); ++i) {
      EXPECT_EQ(together[i].weights.Read(), alone[i].weights.Read());
      EXPECT_EQ(together[i].first.Read(), alone[i].first.Read());
      EXPECT_EQ(together[i].second.Read(), alone[i].second.Read());
      EXPECT_EQ(together[i].working.Read(), alone[i].working.Read());
    }
  }
}

// After many steps both bias corrections are 1: a constant gradient moves a weight by its sign
// times the learning rate.
TEST(AdamWTest, LateStepsAreNotCorrected) {
  const auto backend = MakeCpuBackend(1);
  double gradient[1] = {-2}, weights[1] = {1}, first[1] = {-2}, second[1] = {4};
  ASSERT_TRUE(AdamW<double>(*backend, {.learning_rate = 0.125, .step = 1'000'000'000},
                            {{gradient, absl::MakeSpan(weights), absl::MakeSpan(first),
                              absl::MakeSpan(second)}})
                  .ok());
  EXPECT_NEAR(weights[0], 1.125, 1e-8);
}

TYPED_TEST(AdamWTest, ThreadsDoNotMatter) {
  const int64_t n = 70003;
  const Values gradient = TestValues(n, 1), start = TestValues(n, 2);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    GuardedBuffer<Wide<TypeParam>> gradients(backend, gradient);
    Parameter<TypeParam> parameter(backend, start);
    for (int64_t step = 1; step <= 2; ++step) {
      EXPECT_TRUE(AdamW<TypeParam>(backend,
                                   {.learning_rate = 0.01, .weight_decay = 0.1, .step = step},
                                   {parameter.With(gradients, true)})
                      .ok());
    }
    return std::vector<Values>{parameter.weights.Read(), parameter.first.Read(),
                               parameter.second.Read()};
  });
}

TEST(AdamWTest, RefusesBadArguments) {
  const auto backend = MakeCpuBackend(1);
  float three[3] = {}, two[2] = {}, weights[3] = {}, first[3] = {}, second[3] = {};
  const auto run = [&](const AdamWStep& step, absl::Span<const float> gradient) {
    return AdamW<float>(
               *backend, step,
               {{gradient, absl::MakeSpan(weights), absl::MakeSpan(first), absl::MakeSpan(second)}})
        .code();
  };
  EXPECT_EQ(run({}, three), absl::StatusCode::kOk);
  EXPECT_EQ(run({}, two), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({.step = 0}, three), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({.beta1 = 1}, three), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({.beta2 = NAN}, three), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({.epsilon = 0}, three), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
