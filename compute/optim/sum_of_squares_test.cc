#include "compute/optim/sum_of_squares.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class SumOfSquaresTest : public ::testing::Test {};
TYPED_TEST_SUITE(SumOfSquaresTest, ElementTypes);

template <typename T>
double Run(Backend& backend, const Values& values) {
  GuardedBuffer<T> buffer(backend, values);
  double sum = NAN;
  EXPECT_TRUE(SumOfSquares<T>(backend, buffer.constant(), &sum).ok());
  EXPECT_TRUE(backend.Synchronize().ok());
  return sum;
}

TYPED_TEST(SumOfSquaresTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("sum_of_squares")) {
      const Values values = Rounded<TypeParam>(golden.tensor("values"));
      // What BFloat16 holds of the values has a sum of its own.
      const Values sum = std::is_same_v<TypeParam, BFloat16> ? Values{DotProduct(values, values)}
                                                             : golden.tensor("sum");
      EXPECT_LE(RelativeError({Run<TypeParam>(*backend, values)}, sum), 1e-14);
    }
  }
}

TYPED_TEST(SumOfSquaresTest, SquaresThatFloatCannotHold) {
  const auto backend = TestBackend<TypeParam>(1);
  EXPECT_EQ(Run<TypeParam>(*backend, {0x1p100, 0x1p-100}), 0x1p200 + 0x1p-200);
  EXPECT_EQ(Run<TypeParam>(*backend, {}), 0);
  EXPECT_TRUE(std::isnan(Run<TypeParam>(*backend, {1, NAN})));
  EXPECT_TRUE(std::isinf(Run<TypeParam>(*backend, {1, -INFINITY})));
}

TYPED_TEST(SumOfSquaresTest, ThreadsDoNotMatter) {
  const Values values = TestValues(200003, 1);
  ExpectThreadsAgree<TypeParam>(
      [&](Backend& backend) { return std::vector<Values>{{Run<TypeParam>(backend, values)}}; });
}

// Each is as alone; some are longer than what a block of a card takes.
TYPED_TEST(SumOfSquaresTest, ManyTensors) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    std::vector<GuardedBuffer<TypeParam>> buffers;
    std::vector<absl::Span<const TypeParam>> tensors;
    Values expected;
    for (uint32_t i = 0; i < 300; ++i) {
      const Values values = TestValues(i == 7 || i == 200 ? 70001 : i % 50, i);
      buffers.emplace_back(*backend, values);
      tensors.push_back(buffers.back().constant());
      expected.push_back(Run<TypeParam>(*backend, values));
    }
    Values sums(tensors.size(), NAN);
    ASSERT_TRUE(SumsOfSquares<TypeParam>(*backend, tensors, sums.data()).ok());
    ASSERT_TRUE(backend->Synchronize().ok());
    EXPECT_EQ(sums, expected);
  }
}

// More elements than the most chunks of the smallest size.
TEST(SumOfSquaresTest, LongTensor) {
  const auto backend = MakeCpuBackend(2);
  const std::vector<float> values(5'000'001, 0.5f);
  double sum = 0;
  ASSERT_TRUE(SumOfSquares<float>(*backend, values, &sum).ok());
  EXPECT_EQ(sum, 5'000'001 * 0.25);
}

}  // namespace
}  // namespace longhaul::compute
