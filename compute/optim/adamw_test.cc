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

TYPED_TEST(AdamWTest, Golden) {
  for (const auto& backend : TestBackends()) {
    for (const GoldenCase& golden : LoadGolden("adamw")) {
      SCOPED_TRACE(golden.name);
      const Values zeros(static_cast<size_t>(golden.size("n")), 0);
      GuardedBuffer<TypeParam> weights(*backend, golden.tensor("weights"));
      GuardedBuffer<TypeParam> first(*backend, zeros), second(*backend, zeros);
      for (int64_t step = 1; step <= golden.size("steps"); ++step) {
        const std::string number = absl::StrCat(" ", step);
        GuardedBuffer<TypeParam> gradient(*backend, golden.tensor("gradient" + number));
        const AdamWStep options{
            .learning_rate = golden.tensor("learning_rates")[static_cast<size_t>(step - 1)],
            .beta1 = golden.number("beta1"),
            .beta2 = golden.number("beta2"),
            .epsilon = golden.number("epsilon"),
            .weight_decay = golden.number("weight_decay"),
            .gradient_scale = golden.number("gradient_scale"),
            .step = step};
        ASSERT_TRUE(
            AdamW<TypeParam>(*backend, options,
                             {{gradient.span(), weights.span(), first.span(), second.span()}})
                .ok());
        EXPECT_LE(RelativeError(weights.Read(), golden.tensor("weights" + number)),
                  kGoldenTolerance<TypeParam>);
        EXPECT_LE(RelativeError(first.Read(), golden.tensor("first_moment" + number)),
                  kGoldenTolerance<TypeParam>);
        EXPECT_LE(RelativeError(second.Read(), golden.tensor("second_moment" + number)),
                  kGoldenTolerance<TypeParam>);
      }
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
  ExpectThreadsAgree([&](Backend& backend) {
    const Values zeros(static_cast<size_t>(n), 0);
    GuardedBuffer<TypeParam> gradients(backend, gradient), weights(backend, start),
        first(backend, zeros), second(backend, zeros);
    for (int64_t step = 1; step <= 2; ++step) {
      EXPECT_TRUE(
          AdamW<TypeParam>(backend, {.learning_rate = 0.01, .weight_decay = 0.1, .step = step},
                           {{gradients.span(), weights.span(), first.span(), second.span()}})
              .ok());
    }
    return std::vector<Values>{weights.Read(), first.Read(), second.Read()};
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
