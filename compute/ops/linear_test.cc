#include "compute/ops/linear.h"

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class LinearTest : public ::testing::Test {};
TYPED_TEST_SUITE(LinearTest, ElementTypes);

struct Inputs {
  Values input, weight, bias;  // bias may be empty
};

struct Gradients {
  Values input, weight, bias;
};

template <typename T>
Values Forward(Backend& backend, const LinearShape& shape, const Inputs& inputs) {
  GuardedBuffer<T> input(backend, inputs.input), weight(backend, inputs.weight),
      bias(backend, inputs.bias);
  auto output =
      GuardedBuffer<T>::Poisoned(backend, static_cast<size_t>(shape.rows * shape.pitch()));
  EXPECT_TRUE(
      LinearForward<T>(backend, shape, input.span(), weight.span(), bias.span(), output.span())
          .ok());
  return output.Read();
}

template <typename T>
Gradients Backward(Backend& backend, const LinearShape& shape, const Inputs& inputs,
                   const Values& output_gradient, double start) {
  GuardedBuffer<T> input(backend, inputs.input), weight(backend, inputs.weight),
      gradient(backend, output_gradient);
  auto input_gradient = GuardedBuffer<T>::Poisoned(backend, inputs.input.size());
  GuardedBuffer<Wide<T>> weight_gradient(backend, Values(inputs.weight.size(), start));
  GuardedBuffer<Wide<T>> bias_gradient(backend, Values(inputs.bias.size(), start));
  EXPECT_TRUE(LinearBackward<T>(backend, shape, input.span(), weight.span(), gradient.span(),
                                input_gradient.span(), weight_gradient.span(), bias_gradient.span())
                  .ok());
  return {input_gradient.Read(), weight_gradient.Read(), bias_gradient.Read()};
}

TYPED_TEST(LinearTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("linear")) {
      SCOPED_TRACE(golden.name);
      const LinearShape shape{golden.size("rows"), golden.size("in"), golden.size("out")};
      const auto rounded = [&](const char* name) {
        return Rounded<TypeParam>(golden.optional_tensor(name));
      };
      const Inputs inputs{rounded("input"), rounded("weight"), rounded("bias")};
      const Values output_gradient = rounded("output_gradient");
      Values expected = golden.tensor("output");
      Gradients expected_gradients{golden.tensor("input_gradient"),
                                   golden.tensor("weight_gradient"),
                                   golden.optional_tensor("bias_gradient")};
      if (!kHasCpuKernels<TypeParam>) {
        const auto cpu = MakeCpuBackend(1);
        expected = Forward<double>(*cpu, shape, inputs);
        expected_gradients = Backward<double>(*cpu, shape, inputs, output_gradient, 0);
      }
      constexpr double kTolerance = kGoldenTolerance<TypeParam>;
      EXPECT_LE(RelativeError(Forward<TypeParam>(*backend, shape, inputs), expected), kTolerance);
      const Gradients gradients = Backward<TypeParam>(*backend, shape, inputs, output_gradient, 0);
      EXPECT_LE(RelativeError(gradients.input, expected_gradients.input), kTolerance);
      EXPECT_LE(RelativeError(gradients.weight, expected_gradients.weight), kTolerance);
      EXPECT_LE(RelativeError(gradients.bias, expected_gradients.bias), kTolerance);
    }
  }
}

TEST(LinearTest, GradientsAreFiniteDifferences) {
  const auto backend = MakeCpuBackend(1);
  const LinearShape shape{.rows = 5, .in = 4, .out = 3};
  const Inputs inputs{TestValues(20, 1), TestValues(12, 2), TestValues(3, 3)};
  const Values weights = TestValues(15, 4);
  const Gradients gradients = Backward<double>(*backend, shape, inputs, weights, 0);
  const auto loss = [&](const Inputs& at) {
    return DotProduct(Forward<double>(*backend, shape, at), weights);
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

TYPED_TEST(LinearTest, ParameterGradientsAreAdded) {
  const auto backend = TestBackend<TypeParam>(1);
  const Gradients gradients = Backward<TypeParam>(*backend, {.rows = 2, .in = 1, .out = 1},
                                                  {{2, 3}, {5}, {0}}, {10, 100}, 1000);
  EXPECT_EQ(gradients.input, (Values{50, 500}));
  EXPECT_EQ(gradients.weight, (Values{1320}));
  EXPECT_EQ(gradients.bias, (Values{1110}));
}

// The grid of tiles has remainders in both directions; sizes straddle those where BLAS changes its
// ways for small products.
TYPED_TEST(LinearTest, ThreadsDoNotMatter) {
  for (const LinearShape& shape :
       {LinearShape{385, 67, 101}, LinearShape{1, 130, 1031}, LinearShape{577, 9, 1},
        LinearShape{203, 257, 389}, LinearShape{64, 32, 96}}) {
    SCOPED_TRACE(absl::StrCat(shape.rows, " ", shape.in, " ", shape.out));
    const Inputs inputs{TestValues(shape.rows * shape.in, 1), TestValues(shape.out * shape.in, 2),
                        TestValues(shape.out, 3)};
    const Values gradient = TestValues(shape.rows * shape.out, 4);
    ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
      const Gradients gradients = Backward<TypeParam>(backend, shape, inputs, gradient, 0.5);
      return std::vector<Values>{Forward<TypeParam>(backend, shape, inputs), gradients.input,
                                 gradients.weight, gradients.bias};
    });
  }
}

TYPED_TEST(LinearTest, RowsOfTheOutputMayLieApart) {
  const auto reference = MakeCpuBackend(1);
  constexpr double kTolerance = kGoldenTolerance<TypeParam>;
  for (const LinearShape& shape :
       {LinearShape{5, 7, 11, 64}, LinearShape{5, 7, 11, 13}, LinearShape{203, 9, 389, 448}}) {
    const LinearShape dense{shape.rows, shape.in, shape.out};
    for (const bool has_bias : {false, true}) {
      const Inputs inputs{Rounded<TypeParam>(TestValues(shape.rows * shape.in, 1)),
                          Rounded<TypeParam>(TestValues(shape.out * shape.in, 2)),
                          Rounded<TypeParam>(TestValues(has_bias ? shape.out : 0, 3))};
      const Values gradient = Rounded<TypeParam>(TestValues(shape.rows * shape.out, 4));
      const Values expected = Forward<double>(*reference, dense, inputs);
      const Gradients expected_gradients =
          Backward<double>(*reference, dense, inputs, gradient, 0.5);
      for (const auto& backend : TestBackends<TypeParam>()) {
        const Values output =
            WithoutPitch(Forward<TypeParam>(*backend, shape, inputs), shape.out, shape.pitch());
        EXPECT_LE(RelativeError(output, expected), kTolerance);
        const Gradients gradients = Backward<TypeParam>(
            *backend, shape, inputs, WithPitch(gradient, shape.out, shape.pitch()), 0.5);
        EXPECT_LE(RelativeError(gradients.input, expected_gradients.input), kTolerance);
        EXPECT_LE(RelativeError(gradients.weight, expected_gradients.weight), kTolerance);
        EXPECT_LE(RelativeError(gradients.bias, expected_gradients.bias), kTolerance);
      }
    }
  }
}

TYPED_TEST(LinearTest, InputGradientMayBeSkipped) {
  const auto backend = TestBackend<TypeParam>(2);
  const LinearShape shape{.rows = 3, .in = 2, .out = 2};
  const Inputs inputs{TestValues(6, 1), TestValues(4, 2), {}};
  const Values output_gradient = TestValues(6, 3);
  GuardedBuffer<TypeParam> input(*backend, inputs.input), weight(*backend, inputs.weight),
      gradient(*backend, output_gradient);
  GuardedBuffer<Wide<TypeParam>> weight_gradient(*backend, Values(4, 0));
  ASSERT_TRUE(LinearBackward<TypeParam>(*backend, shape, input.span(), weight.span(),
                                        gradient.span(), {}, weight_gradient.span(), {})
                  .ok());
  EXPECT_EQ(weight_gradient.Read(),
            Backward<TypeParam>(*backend, shape, inputs, output_gradient, 0).weight);
}

TEST(LinearTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float input[6] = {}, weight[12] = {}, bias[4] = {}, output[8] = {};
  const auto run = [&](const LinearShape& shape, absl::Span<const float> with_bias) {
    return LinearForward<float>(*backend, shape, input, weight, with_bias, absl::MakeSpan(output))
        .code();
  };
  EXPECT_EQ(run({2, 3, 4}, bias), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 4}, {}), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 4}, output), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 3}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 4}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 0}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 4, 5}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 4, 3}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 4, -4}, bias), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({int64_t{1} << 40, 3, 4}, bias), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
