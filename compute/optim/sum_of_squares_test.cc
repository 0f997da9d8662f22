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
  for (const auto& backend : TestBackends()) {
    for (const GoldenCase& golden : LoadGolden("sum_of_squares")) {
      EXPECT_LE(
          RelativeError({Run<TypeParam>(*backend, golden.tensor("values"))}, golden.tensor("sum")),
          1e-14);
    }
  }
}

TYPED_TEST(SumOfSquaresTest, SquaresThatFloatCannotHold) {
  const auto backend = MakeCpuBackend(1);
  EXPECT_EQ(Run<TypeParam>(*backend, {0x1p100, 0x1p-100}), 0x1p200 + 0x1p-200);
  EXPECT_EQ(Run<TypeParam>(*backend, {}), 0);
  EXPECT_TRUE(std::isnan(Run<TypeParam>(*backend, {1, NAN})));
  EXPECT_TRUE(std::isinf(Run<TypeParam>(*backend, {1, -INFINITY})));
}

TYPED_TEST(SumOfSquaresTest, ThreadsDoNotMatter) {
  const Values values = TestValues(200003, 1);
  ExpectThreadsAgree(
      [&](Backend& backend) { return std::vector<Values>{{Run<TypeParam>(backend, values)}}; });
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
