#include "compute/ops/layer_norm.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class LayerNormTest : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNormTest, ElementTypes);

struct Inputs {
  Values input, weight, bias;
};

struct Outputs {
  Values output, statistics;
};

struct Gradients {
  Values input, weight, bias;
};

template <typename T>
Outputs Forward(Backend& backend, const LayerNormShape& shape, const Inputs& inputs) {
  GuardedBuffer<T> input(backend, inputs.input), weight(backend, inputs.weight),
      bias(backend, inputs.bias);
  auto output = GuardedBuffer<T>::Poisoned(backend, inputs.input.size());
  auto statistics = GuardedBuffer<Wide<T>>::Poisoned(backend, static_cast<size_t>(2 * shape.rows));
  EXPECT_TRUE(LayerNormForward<T>(backend, shape, input.span(), weight.span(), bias.span(),
                                  output.span(), statistics.span())
                  .ok());
  return {output.Read(), statistics.Read()};
}

template <typename T>
Gradients Backward(Backend& backend, const LayerNormShape& shape, const Inputs& inputs,
                   const Values& output_gradient, double start) {
  const Outputs forward = Forward<T>(backend, shape, inputs);
  GuardedBuffer<T> input(backend, inputs.input), weight(backend, inputs.weight),
      gradient(backend, output_gradient);
  GuardedBuffer<Wide<T>> statistics(backend, forward.statistics);
  const Values initial(static_cast<size_t>(shape.width), start);
  GuardedBuffer<Wide<T>> weight_gradient(backend, initial), bias_gradient(backend, initial);
  auto input_gradient = GuardedBuffer<T>::Poisoned(backend, inputs.input.size());
  EXPECT_TRUE(LayerNormBackward<T>(backend, shape, input.span(), weight.span(), statistics.span(),
                                   gradient.span(), input_gradient.span(), weight_gradient.span(),
                                   bias_gradient.span())
                  .ok());
  return {input_gradient.Read(), weight_gradient.Read(), bias_gradient.Read()};
}

TYPED_TEST(LayerNormTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("layer_norm")) {
      SCOPED_TRACE(golden.name);
      const LayerNormShape shape{golden.size("rows"), golden.size("width"),
                                 golden.number("epsilon")};
      const auto rounded = [&](const char* name) {
        return Rounded<TypeParam>(golden.tensor(name));
      };
      const Inputs inputs{rounded("input"), rounded("weight"), rounded("bias")};
      const Values output_gradient = rounded("output_gradient");
      Values expected = golden.tensor("output");
      Gradients expected_gradients{golden.tensor("input_gradient"),
                                   golden.tensor("weight_gradient"),
                                   golden.tensor("bias_gradient")};
      if (!kHasCpuKernels<TypeParam>) {
        const auto cpu = MakeCpuBackend(1);
        expected = Forward<double>(*cpu, shape, inputs).output;
        expected_gradients = Backward<double>(*cpu, shape, inputs, output_gradient, 0);
      }
      const Outputs outputs = Forward<TypeParam>(*backend, shape, inputs);
      const Gradients gradients = Backward<TypeParam>(*backend, shape, inputs, output_gradient, 0);
      constexpr double kTolerance = kGoldenTolerance<TypeParam>;
      EXPECT_LE(RelativeError(outputs.output, expected), kTolerance);
      EXPECT_LE(RelativeError(gradients.input, expected_gradients.input), kTolerance);
      EXPECT_LE(RelativeError(gradients.weight, expected_gradients.weight), kTolerance);
      EXPECT_LE(RelativeError(gradients.bias, expected_gradients.bias), kTolerance);
    }
  }
}

TEST(LayerNormTest, GradientsAreFiniteDifferences) {
  const auto backend = MakeCpuBackend(1);
  const LayerNormShape shape{.rows = 3, .width = 19, .epsilon = 1e-5};
  const Inputs inputs{TestValues(57, 1), TestValues(19, 2), TestValues(19, 3)};
  const Values weights = TestValues(57, 4);
  const Gradients gradients = Backward<double>(*backend, shape, inputs, weights, 0);
  const auto loss = [&](const Inputs& at) {
    return DotProduct(Forward<double>(*backend, shape, at).output, weights);
  };
  const Values input = NumericalGradient(
      [&](const Values& x) {
        return loss({x, inputs.weight, inputs.bias});
      },
      inputs.input);
  const Values weight = NumericalGradient(
      [&](const Values& x) {
        return loss({inputs.input, x, inputs.bias});
      },
      inputs.weight);
  const Values bias = NumericalGradient(
      [&](const Values& x) {
        return loss({inputs.input, inputs.weight, x});
      },
      inputs.bias);
  EXPECT_LE(RelativeError(gradients.input, input), kDifferenceTolerance);
  EXPECT_LE(RelativeError(gradients.weight, weight), kDifferenceTolerance);
  EXPECT_LE(RelativeError(gradients.bias, bias), kDifferenceTolerance);
}

TYPED_TEST(LayerNormTest, ParameterGradientsAreAdded) {
  const auto backend = TestBackend<TypeParam>(1);
  const LayerNormShape shape{.rows = 2, .width = 2, .epsilon = 0};
  // Each row normalises to -1, 1.
  const Inputs inputs{{1, 3, 5, 9}, {1, 1}, {0, 0}};
  const Gradients gradients = Backward<TypeParam>(*backend, shape, inputs, {1, 2, 3, 4}, 100);
  EXPECT_EQ(gradients.weight, (Values{96, 106}));
  EXPECT_EQ(gradients.bias, (Values{104, 106}));
}

TYPED_TEST(LayerNormTest, ThreadsDoNotMatter) {
  const LayerNormShape shape{.rows = 331, .width = 197, .epsilon = 1e-5};
  const int64_t elements = shape.rows * shape.width;
  const Inputs inputs{TestValues(elements, 1), TestValues(shape.width, 2),
                      TestValues(shape.width, 3)};
  const Values gradient = TestValues(elements, 4);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    const Outputs outputs = Forward<TypeParam>(backend, shape, inputs);
    const Gradients gradients = Backward<TypeParam>(backend, shape, inputs, gradient, 0.5);
    return std::vector<Values>{outputs.output, outputs.statistics, gradients.input,
                               gradients.weight, gradients.bias};
  });
}

TEST(LayerNormTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float matrix[6] = {}, row[3] = {}, statistics[4] = {}, short_row[2] = {};
  const auto run = [&](const LayerNormShape& shape, absl::Span<const float> bias) {
    return LayerNormForward<float>(*backend, shape, matrix, row, bias, absl::MakeSpan(matrix),
                                   absl::MakeSpan(statistics))
        .code();
  };
  EXPECT_EQ(run({2, 3, 1e-5}, row), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 1e-5}, short_row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 1e-5}, row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({0, 3, 1e-5}, row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, -1}, row), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, NAN}, row), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
