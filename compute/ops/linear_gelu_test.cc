#include "compute/ops/linear_gelu.h"

#include "compute/ops/gelu.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class LinearGeluTest : public ::testing::Test {};
TYPED_TEST_SUITE(LinearGeluTest, ElementTypes);

// Sizes that products with epilogues take, and some that they do not.
const LinearShape kShapes[] = {{16, 24, 32}, {7, 16, 8}, {6, 8, 4}, {6, 4, 8}, {5, 3, 11}};

struct Outputs {
  Values linear, output;
};

template <typename T>
Outputs Forward(Backend& backend, const LinearShape& shape, bool together) {
  GuardedBuffer<T> input(backend, TestValues(shape.rows * shape.in, 1)),
      weight(backend, TestValues(shape.out * shape.in, 2)), bias(backend, TestValues(shape.out, 3));
  const size_t elements = static_cast<size_t>(shape.rows * shape.out);
  auto linear = GuardedBuffer<T>::Poisoned(backend, elements);
  auto output = GuardedBuffer<T>::Poisoned(backend, elements);
  if (together) {
    EXPECT_TRUE(LinearGeluForward<T>(
                    backend, shape,
                    {input.span(), weight.span(), bias.span(), linear.span(), output.span()})
                    .ok());
  } else {
    EXPECT_TRUE(
        LinearForward<T>(backend, shape, input.span(), weight.span(), bias.span(), linear.span())
            .ok());
    EXPECT_TRUE(GeluForward<T>(backend, linear.span(), output.span()).ok());
  }
  return {linear.Read(), output.Read()};
}

TYPED_TEST(LinearGeluTest, ForwardIsOneAfterTheOther) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const LinearShape& shape : kShapes) {
      const Outputs expected = Forward<TypeParam>(*backend, shape, false);
      const Outputs actual = Forward<TypeParam>(*backend, shape, true);
      EXPECT_LE(RelativeError(actual.linear, expected.linear), kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(actual.output, expected.output), kGoldenTolerance<TypeParam>);
    }
  }
}

struct Gradients {
  Values input, weight, bias;
};

template <typename T>
Gradients Backward(Backend& backend, const LinearShape& shape, bool together) {
  const Values pre_activation = Rounded<T>(TestValues(shape.rows * shape.in, 1));
  GuardedBuffer<T> gelu_input(backend, pre_activation),
      weight(backend, TestValues(shape.out * shape.in, 2)),
      gradient(backend, TestValues(shape.rows * shape.out, 3));
  auto gelu_output = GuardedBuffer<T>::Poisoned(backend, pre_activation.size());
  EXPECT_TRUE(GeluForward<T>(backend, gelu_input.span(), gelu_output.span()).ok());
  auto own = GuardedBuffer<T>::Poisoned(backend, pre_activation.size());
  auto result = GuardedBuffer<T>::Poisoned(backend, pre_activation.size());
  GuardedBuffer<Wide<T>> weight_gradient(backend,
                                         Values(static_cast<size_t>(shape.out * shape.in), 0.5)),
      bias_gradient(backend, Values(static_cast<size_t>(shape.out), 0.25));
  if (together) {
    EXPECT_TRUE(GeluLinearBackward<T>(
                    backend, shape,
                    {gelu_input.span(), gelu_output.span(), weight.span(), gradient.span(),
                     own.span(), result.span(), weight_gradient.span(), bias_gradient.span()})
                    .ok());
  } else {
    EXPECT_TRUE(LinearBackward<T>(backend, shape, gelu_output.span(), weight.span(),
                                  gradient.span(), own.span(), weight_gradient.span(),
                                  bias_gradient.span())
                    .ok());
    EXPECT_TRUE(GeluBackward<T>(backend, gelu_input.span(), own.span(), result.span()).ok());
  }
  return {result.Read(), weight_gradient.Read(), bias_gradient.Read()};
}

TYPED_TEST(LinearGeluTest, BackwardIsOneAfterTheOther) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const LinearShape& shape : kShapes) {
      const Gradients expected = Backward<TypeParam>(*backend, shape, false);
      const Gradients actual = Backward<TypeParam>(*backend, shape, true);
      EXPECT_LE(RelativeError(actual.input, expected.input), kGoldenTolerance<TypeParam>);
      EXPECT_EQ(actual.weight, expected.weight);
      EXPECT_EQ(actual.bias, expected.bias);
    }
  }
}

TEST(LinearGeluTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float input[6] = {}, weight[12] = {}, bias[4] = {}, linear[8] = {}, output[8] = {};
  const auto run = [&](const LinearShape& shape, size_t biases) {
    return LinearGeluForward<float>(*backend, shape,
                                    {input, weight, absl::MakeSpan(bias).first(biases),
                                     absl::MakeSpan(linear), absl::MakeSpan(output)})
        .code();
  };
  EXPECT_EQ(run({2, 3, 4}, 4), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 4}, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 3}, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({0, 3, 4}, 4), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({1, 3, 4, 8}, 4), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
