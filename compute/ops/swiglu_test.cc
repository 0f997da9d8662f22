#include "compute/ops/swiglu.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class SwiGluTest : public ::testing::Test {};
TYPED_TEST_SUITE(SwiGluTest, ElementTypes);

template <typename T>
Values Forward(Backend& backend, const SwiGluShape& shape, const Values& input) {
  GuardedBuffer<T> in(backend, input);
  auto output = GuardedBuffer<T>::Poisoned(backend, static_cast<size_t>(shape.rows * shape.width));
  EXPECT_TRUE(SwiGluForward<T>(backend, shape, in.span(), output.span()).ok());
  return output.Read();
}

template <typename T>
Values Backward(Backend& backend, const SwiGluShape& shape, const Values& input,
                const Values& output_gradient) {
  GuardedBuffer<T> in(backend, input), gradient(backend, output_gradient);
  auto result = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(SwiGluBackward<T>(backend, shape, in.span(), gradient.span(), result.span()).ok());
  // In place.
  EXPECT_TRUE(SwiGluBackward<T>(backend, shape, in.span(), gradient.span(), in.span()).ok());
  EXPECT_EQ(result.Read(), in.Read());
  return result.Read();
}

TYPED_TEST(SwiGluTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("swiglu")) {
      SCOPED_TRACE(golden.name);
      const SwiGluShape shape{golden.size("rows"), golden.size("width")};
      const Values& input = golden.tensor("input");
      EXPECT_LE(RelativeError(Forward<TypeParam>(*backend, shape, input), golden.tensor("output")),
                kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(
                    Backward<TypeParam>(*backend, shape, input, golden.tensor("output_gradient")),
                    golden.tensor("input_gradient")),
                kGoldenTolerance<TypeParam>);
    }
  }
}

TEST(SwiGluTest, GradientIsFiniteDifference) {
  const auto backend = MakeCpuBackend(1);
  const SwiGluShape shape{.rows = 3, .width = 19};
  Values input = TestValues(2 * 57, 1);
  for (double& value : input) value *= 5;
  const Values weights = TestValues(57, 2);
  const Values numerical = NumericalGradient(
      [&](const Values& x) { return DotProduct(Forward<double>(*backend, shape, x), weights); },
      input);
  EXPECT_LE(RelativeError(Backward<double>(*backend, shape, input, weights), numerical),
            kDifferenceTolerance);
}

TYPED_TEST(SwiGluTest, NotANumberIsNotHidden) {
  const auto backend = TestBackend<TypeParam>(1);
  const Values output = Forward<TypeParam>(*backend, {1, 2}, {NAN, 1, 1, NAN});
  EXPECT_TRUE(std::isnan(output[0]));
  EXPECT_TRUE(std::isnan(output[1]));
}

TYPED_TEST(SwiGluTest, ThreadsDoNotMatter) {
  const SwiGluShape shape{.rows = 301, .width = 197};
  const Values input = TestValues(2 * shape.rows * shape.width, 1);
  const Values gradient = TestValues(shape.rows * shape.width, 2);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    return std::vector<Values>{Forward<TypeParam>(backend, shape, input),
                               Backward<TypeParam>(backend, shape, input, gradient)};
  });
}

TEST(SwiGluTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float input[12] = {}, output[6] = {};
  const auto run = [&](const SwiGluShape& shape, size_t elements) {
    return SwiGluForward<float>(*backend, shape, input, absl::MakeSpan(output, elements)).code();
  };
  EXPECT_EQ(run({2, 3}, 6), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3}, 5), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({1, 3}, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({-2, 3}, 6), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SwiGluBackward<float>(*backend, {2, 3}, input, output, absl::MakeSpan(input, 6)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
