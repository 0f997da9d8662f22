#include "compute/ops/gelu.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class GeluTest : public ::testing::Test {};
TYPED_TEST_SUITE(GeluTest, ElementTypes);

template <typename T>
Values Forward(Backend& backend, const Values& input) {
  GuardedBuffer<T> in(backend, input);
  auto output = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(GeluForward<T>(backend, in.span(), output.span()).ok());
  return output.Read();
}

template <typename T>
Values Backward(Backend& backend, const Values& input, const Values& output_gradient) {
  GuardedBuffer<T> in(backend, input), gradient(backend, output_gradient);
  auto result = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(GeluBackward<T>(backend, in.span(), gradient.span(), result.span()).ok());
  // In place, as the executor calls it.
  EXPECT_TRUE(GeluBackward<T>(backend, in.span(), gradient.span(), gradient.span()).ok());
  EXPECT_EQ(result.Read(), gradient.Read());
  return result.Read();
}

TYPED_TEST(GeluTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("gelu")) {
      const Values& input = golden.tensor("input");
      const Values output = Forward<TypeParam>(*backend, input);
      const Values gradient =
          Backward<TypeParam>(*backend, input, golden.tensor("output_gradient"));
      EXPECT_LE(RelativeError(output, golden.tensor("output")), kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(gradient, golden.tensor("input_gradient")),
                kGoldenTolerance<TypeParam>);
      // One huge input would hide the others in a norm.
      for (size_t i = 0; i < input.size(); ++i) {
        EXPECT_NEAR(output[i], golden.tensor("output")[i],
                    kGoldenTolerance<TypeParam> * std::max(1.0, std::abs(input[i])))
            << "input " << input[i];
        EXPECT_NEAR(gradient[i], golden.tensor("input_gradient")[i],
                    kGoldenTolerance<TypeParam> * 10)
            << "input " << input[i];
      }
    }
  }
}

TEST(GeluTest, GradientIsFiniteDifference) {
  const auto backend = MakeCpuBackend(1);
  Values input = TestValues(61, 1);
  for (double& value : input) value *= 5;
  const Values weights = TestValues(61, 2);
  const Values numerical = NumericalGradient(
      [&](const Values& x) { return DotProduct(Forward<double>(*backend, x), weights); }, input);
  EXPECT_LE(RelativeError(Backward<double>(*backend, input, weights), numerical),
            kDifferenceTolerance);
}

TYPED_TEST(GeluTest, NotANumberIsNotHidden) {
  const auto backend = TestBackend<TypeParam>(1);
  EXPECT_TRUE(std::isnan(Forward<TypeParam>(*backend, {0, NAN, 1})[1]));
  GuardedBuffer<TypeParam> input(*backend, Values{0, NAN, 1}), gradient(*backend, Values{1, 1, 1});
  ASSERT_TRUE(
      GeluBackward<TypeParam>(*backend, input.span(), gradient.span(), gradient.span()).ok());
  EXPECT_TRUE(std::isnan(gradient.Read()[1]));
}

TYPED_TEST(GeluTest, ThreadsDoNotMatter) {
  const Values input = TestValues(70001, 1), gradient = TestValues(70001, 2);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    return std::vector<Values>{Forward<TypeParam>(backend, input),
                               Backward<TypeParam>(backend, input, gradient)};
  });
}

TEST(GeluTest, RefusesUnequalSpans) {
  const auto backend = MakeCpuBackend(1);
  float three[3] = {}, two[2] = {};
  EXPECT_EQ(GeluForward<float>(*backend, two, absl::MakeSpan(three)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GeluBackward<float>(*backend, two, three, absl::MakeSpan(three)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GeluBackward<float>(*backend, three, two, absl::MakeSpan(three)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
