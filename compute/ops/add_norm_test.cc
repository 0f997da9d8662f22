#include "compute/ops/add_norm.h"

#include "compute/ops/add.h"
#include "compute/ops/layer_norm.h"
#include "compute/ops/rms_norm.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class AddNormTest : public ::testing::Test {};
TYPED_TEST_SUITE(AddNormTest, ElementTypes);

// Rows that a block of a card holds whole, wider ones, and some that are not aligned.
const NormShape kShapes[] = {{5, 16, 1e-5, true},   {5, 16, 1e-5, false},  {3, 1031, 1e-5, true},
                             {35, 24, 1e-5, false}, {2, 9001, 1e-5, true}, {2, 9001, 1e-5, false}};

Values MatrixOf(const NormShape& shape, uint32_t seed) {
  return TestValues(shape.rows * shape.width, seed);
}
size_t StatisticsOf(const NormShape& shape) {
  return static_cast<size_t>(shape.rows * (shape.centred ? 2 : 1));
}
Values BiasOf(const NormShape& shape) {
  return shape.centred ? TestValues(shape.width, 4) : Values{};
}

struct Outputs {
  Values sum, output, statistics;
};

// The operators one after the other.
template <typename T>
Outputs OneByOne(Backend& backend, const NormShape& shape) {
  GuardedBuffer<T> a(backend, MatrixOf(shape, 1)), b(backend, MatrixOf(shape, 2)),
      weight(backend, TestValues(shape.width, 3)), bias(backend, BiasOf(shape));
  const size_t elements = MatrixOf(shape, 1).size();
  auto sum = GuardedBuffer<T>::Poisoned(backend, elements);
  auto output = GuardedBuffer<T>::Poisoned(backend, elements);
  auto statistics = GuardedBuffer<Wide<T>>::Poisoned(backend, StatisticsOf(shape));
  EXPECT_TRUE(Add<T>(backend, a.span(), b.span(), sum.span()).ok());
  if (shape.centred) {
    EXPECT_TRUE(LayerNormForward<T>(backend, {shape.rows, shape.width, shape.epsilon}, sum.span(),
                                    weight.span(), bias.span(), output.span(), statistics.span())
                    .ok());
  } else {
    EXPECT_TRUE(RmsNormForward<T>(backend, {shape.rows, shape.width, shape.epsilon}, sum.span(),
                                  weight.span(), output.span(), statistics.span())
                    .ok());
  }
  return {sum.Read(), output.Read(), statistics.Read()};
}

// With the output over the second addend, as plans may place it.
template <typename T>
Outputs Together(Backend& backend, const NormShape& shape) {
  GuardedBuffer<T> a(backend, MatrixOf(shape, 1)), b(backend, MatrixOf(shape, 2)),
      weight(backend, TestValues(shape.width, 3)), bias(backend, BiasOf(shape));
  auto sum = GuardedBuffer<T>::Poisoned(backend, MatrixOf(shape, 1).size());
  auto statistics = GuardedBuffer<Wide<T>>::Poisoned(backend, StatisticsOf(shape));
  EXPECT_TRUE(AddNormForward<T>(backend, shape,
                                {a.span(), b.span(), sum.span(), weight.span(), bias.span(),
                                 b.span(), statistics.span()})
                  .ok());
  return {sum.Read(), b.Read(), statistics.Read()};
}

TYPED_TEST(AddNormTest, ForwardIsOneAfterTheOther) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const NormShape& shape : kShapes) {
      const Outputs expected = OneByOne<TypeParam>(*backend, shape);
      const Outputs actual = Together<TypeParam>(*backend, shape);
      EXPECT_EQ(actual.sum, expected.sum);
      EXPECT_EQ(actual.output, expected.output);
      EXPECT_EQ(actual.statistics, expected.statistics);
    }
  }
}

struct Gradients {
  Values input, weight, bias;
};

template <typename T>
Gradients Backward(Backend& backend, const NormShape& shape, bool together) {
  const Values statistics = OneByOne<T>(backend, shape).statistics;
  GuardedBuffer<T> input(backend, OneByOne<T>(backend, shape).sum),
      weight(backend, TestValues(shape.width, 3)), gradient(backend, MatrixOf(shape, 5)),
      so_far(backend, MatrixOf(shape, 6));
  GuardedBuffer<Wide<T>> kept(backend, statistics);
  GuardedBuffer<Wide<T>> weight_gradient(backend, Values(static_cast<size_t>(shape.width), 0.5)),
      bias_gradient(backend, Values(BiasOf(shape).size(), 0.25));
  auto own = GuardedBuffer<T>::Poisoned(backend, MatrixOf(shape, 1).size());
  if (together) {
    EXPECT_TRUE(NormBackwardOnto<T>(
                    backend, shape,
                    {input.span(), weight.span(), kept.span(), gradient.span(), so_far.span(),
                     own.span(), so_far.span(), weight_gradient.span(), bias_gradient.span()})
                    .ok());
  } else {
    EXPECT_TRUE(
        (shape.centred
             ? LayerNormBackward<T>(backend, {shape.rows, shape.width, shape.epsilon}, input.span(),
                                    weight.span(), kept.span(), gradient.span(), own.span(),
                                    weight_gradient.span(), bias_gradient.span())
             : RmsNormBackward<T>(backend, {shape.rows, shape.width, shape.epsilon}, input.span(),
                                  weight.span(), kept.span(), gradient.span(), own.span(),
                                  weight_gradient.span()))
            .ok());
    EXPECT_TRUE(Add<T>(backend, so_far.span(), own.span(), so_far.span()).ok());
  }
  return {so_far.Read(), weight_gradient.Read(), bias_gradient.Read()};
}

TYPED_TEST(AddNormTest, BackwardIsOneAfterTheOther) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const NormShape& shape : kShapes) {
      const Gradients expected = Backward<TypeParam>(*backend, shape, false);
      const Gradients actual = Backward<TypeParam>(*backend, shape, true);
      EXPECT_EQ(actual.weight, expected.weight);
      EXPECT_EQ(actual.bias, expected.bias);
      // Rounded once, not twice, where a card multiplies and adds in one.
      EXPECT_LE(RelativeError(actual.input, expected.input), kGoldenTolerance<TypeParam>);
    }
  }
}

TEST(AddNormTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float matrix[6] = {}, row[3] = {}, statistics[4] = {};
  const auto run = [&](const NormShape& shape, size_t biases, size_t kept) {
    return AddNormForward<float>(
               *backend, shape,
               {matrix, matrix, absl::MakeSpan(matrix), row, absl::MakeSpan(row).first(biases),
                absl::MakeSpan(matrix), absl::MakeSpan(statistics).first(kept)})
        .code();
  };
  EXPECT_EQ(run({2, 3, 1e-5, true}, 3, 4), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 1e-5, false}, 0, 2), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 3, 1e-5, true}, 0, 4), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 1e-5, false}, 0, 4), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 1e-5, false}, 0, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, -1, false}, 0, 2), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
