#include "compute/ops/rms_norm.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class RmsNormTest : public ::testing::Test {};
TYPED_TEST_SUITE(RmsNormTest, ElementTypes);

struct Outputs {
  Values output, statistics;
};

struct Gradients {
  Values input, weight;
};

template <typename T>
Outputs Forward(Backend& backend, const RmsNormShape& shape, const Values& input,
                const Values& weight) {
  GuardedBuffer<T> in(backend, input), weights(backend, weight);
  auto output = GuardedBuffer<T>::Poisoned(backend, input.size());
  auto statistics = GuardedBuffer<Wide<T>>::Poisoned(backend, static_cast<size_t>(shape.rows));
  EXPECT_TRUE(
      RmsNormForward<T>(backend, shape, in.span(), weights.span(), output.span(), statistics.span())
          .ok());
  return {output.Read(), statistics.Read()};
}

// Adds to an accumulator that starts at `start`.
template <typename T>
Gradients Backward(Backend& backend, const RmsNormShape& shape, const Values& input,
                   const Values& weight, const Values& output_gradient, double start) {
  const Outputs forward = Forward<T>(backend, shape, input, weight);
  GuardedBuffer<T> in(backend, input), weights(backend, weight), gradient(backend, output_gradient);
  GuardedBuffer<Wide<T>> statistics(backend, forward.statistics);
  GuardedBuffer<Wide<T>> weight_gradient(backend, Values(static_cast<size_t>(shape.width), start));
  auto input_gradient = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(RmsNormBackward<T>(backend, shape, in.span(), weights.span(), statistics.span(),
                                 gradient.span(), input_gradient.span(), weight_gradient.span())
                  .ok());
  return {input_gradient.Read(), weight_gradient.Read()};
}

TYPED_TEST(RmsNormTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("rms_norm")) {
      SCOPED_TRACE(golden.name);
      const RmsNormShape shape{golden.size("rows"), golden.size("width"), golden.number("epsilon")};
      const Values &input = golden.tensor("input"), &weight = golden.tensor("weight");
      EXPECT_LE(RelativeError(Forward<TypeParam>(*backend, shape, input, weight).output,
                              golden.tensor("output")),
                kGoldenTolerance<TypeParam>);
      const Gradients gradients =
          Backward<TypeParam>(*backend, shape, input, weight, golden.tensor("output_gradient"), 0);
      EXPECT_LE(RelativeError(gradients.input, golden.tensor("input_gradient")),
                kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(gradients.weight, golden.tensor("weight_gradient")),
                kGoldenTolerance<TypeParam>);
    }
  }
}

TEST(RmsNormTest, GradientsAreFiniteDifferences) {
  const auto backend = MakeCpuBackend(1);
  const RmsNormShape shape{.rows = 3, .width = 19, .epsilon = 1e-5};
  const Values input = TestValues(57, 1), weight = TestValues(19, 2), weights = TestValues(57, 3);
  const Gradients gradients = Backward<double>(*backend, shape, input, weight, weights, 0);
  const auto loss = [&](const Values& x, const Values& w) {
    return DotProduct(Forward<double>(*backend, shape, x, w).output, weights);
  };
  EXPECT_LE(
      RelativeError(gradients.input,
                    NumericalGradient([&](const Values& x) { return loss(x, weight); }, input)),
      kDifferenceTolerance);
  EXPECT_LE(
      RelativeError(gradients.weight,
                    NumericalGradient([&](const Values& w) { return loss(input, w); }, weight)),
      kDifferenceTolerance);
}

TYPED_TEST(RmsNormTest, WeightGradientIsAdded) {
  const auto backend = TestBackend<TypeParam>(1);
  const RmsNormShape shape{.rows = 2, .width = 2, .epsilon = 0};
  // Rows of equal magnitudes normalise to their signs.
  const Gradients gradients =
      Backward<TypeParam>(*backend, shape, {4, -4, 8, 8}, {1, 1}, {1, 2, 3, 4}, 100);
  EXPECT_EQ(gradients.weight, (Values{104, 102}));
}

TYPED_TEST(RmsNormTest, ThreadsDoNotMatter) {
  const RmsNormShape shape{.rows = 331, .width = 197, .epsilon = 1e-5};
  const int64_t elements = shape.rows * shape.width;
  const Values input = TestValues(elements, 1), weight = TestValues(shape.width, 2);
  const Values gradient = TestValues(elements, 3);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    const Outputs outputs = Forward<TypeParam>(backend, shape, input, weight);
    const Gradients gradients = Backward<TypeParam>(backend, shape, input, weight, gradient, 0.5);
    return std::vector<Values>{outputs.output, outputs.statistics, gradients.input,
                               gradients.weight};
  });
}

TEST(RmsNormTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float matrix[6] = {}, row[3] = {}, statistics[2] = {}, short_row[2] = {};
  const auto run = [&](const RmsNormShape& shape, absl::Span<const float> weight) {
    return RmsNormForward<float>(*backend, shape, matrix, weight, absl::MakeSpan(matrix),
                                 absl::MakeSpan(statistics))
        .code();
  };
  EXPECT_EQ(run({2, 3, 1e-5}, row), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 1e-5}, short_row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 1e-5}, short_row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({0, 3, 1e-5}, row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, -1}, row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, NAN}, row), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
