#include "compute/backend/cuda/lt_product.h"

#include <cmath>
#include <utility>

#include "base/clock.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gtest/gtest.h"

namespace longhaul::compute::cuda {
namespace {

template <typename T>
class LtProductTest : public ::testing::Test {};
using LtTypes = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(LtProductTest, LtTypes);

double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Element by element, in double, of a [rows, inner] or its transpose, and b [inner, columns] or its
// transpose.
double Sum(const Values& a, const Values& b, const LtProduct<float>& shape, int64_t row,
           int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < shape.inner; ++i) {
    sum +=
        a[static_cast<size_t>(shape.a.transposed ? i * shape.rows + row : row * shape.inner + i)] *
        b[static_cast<size_t>(shape.b.transposed ? column * shape.inner + i
                                                 : i * shape.columns + column)];
  }
  return sum;
}

TYPED_TEST(LtProductTest, IsItsDefinition) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  for (int turned = 0; turned < 4; ++turned) {
    LtProduct<float> shape;
    shape.rows = 8;
    shape.columns = 24;
    shape.inner = 16;
    shape.a.transposed = turned % 2 == 1;
    shape.b.transposed = turned / 2 == 1;
    const Values a = Rounded<TypeParam>(TestValues(8 * 16, 1));
    const Values b = Rounded<TypeParam>(TestValues(16 * 24, 2));
    const Values bias = Rounded<TypeParam>(TestValues(24, 3));
    GuardedBuffer<TypeParam> a_on(*backend, a), b_on(*backend, b), bias_on(*backend, bias);
    for (const Epilogue epilogue :
         {Epilogue::kBias, Epilogue::kGeluOfBias, Epilogue::kGeluGradient}) {
      const Values before = Rounded<TypeParam>(TestValues(8 * 24, 4));
      GuardedBuffer<TypeParam> extra(*backend, before);
      auto c = GuardedBuffer<TypeParam>::Poisoned(*backend, 8 * 24);
      const auto done = backend->Run(LtProduct<TypeParam>{
          .rows = shape.rows,
          .columns = shape.columns,
          .inner = shape.inner,
          .a = {a_on.span().data(), shape.a.transposed},
          .b = {b_on.span().data(), shape.b.transposed},
          .c = c.span().data(),
          .epilogue = epilogue,
          .bias = epilogue == Epilogue::kGeluGradient ? nullptr : bias_on.span().data(),
          .extra = epilogue == Epilogue::kBias ? nullptr : extra.span().data()});
      ASSERT_TRUE(done.ok() && *done) << done.status();
      Values expected, expected_extra = before;
      for (int64_t i = 0; i < 8 * 24; ++i) {
        const size_t at = static_cast<size_t>(i);
        double value = Sum(a, b, shape, i / 24, i % 24);
        if (epilogue == Epilogue::kGeluGradient) {
          constexpr double kStep = 1e-5;
          value *= (Gelu(before[at] + kStep) - Gelu(before[at] - kStep)) / (2 * kStep);
        } else {
          value += bias[at % 24];
        }
        if (epilogue == Epilogue::kGeluOfBias)
          expected_extra[at] = std::exchange(value, Gelu(value));
        expected.push_back(value);
      }
      EXPECT_LE(RelativeError(c.Read(), expected), kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(extra.Read(), expected_extra), kGoldenTolerance<TypeParam>);
    }
  }
}

// A product whose parts lie in 904 elements from `part` on.
template <typename T>
LtProduct<T> GeluOfBias(T* part, int64_t columns, int64_t inner) {
  return {.rows = 8,
          .columns = columns,
          .inner = inner,
          .a = {part, false},
          .b = {part, false},
          .c = part + 512,
          .epilogue = Epilogue::kGeluOfBias,
          .bias = part,
          .extra = part + 768};
}

// cuBLASLt may read the alignment of bias and extra matrix from their addresses as it chooses.
TYPED_TEST(LtProductTest, AnAlgorithmServesAllAddresses) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  GuardedBuffer<TypeParam> memory(*backend, Values(1000, 1));
  constexpr size_t kStep = 16 / sizeof(TypeParam);
  for (const size_t first : {size_t{0}, kStep, 2 * kStep}) {
    const auto done = backend->Run(GeluOfBias(memory.span().data() + first, 16, 16));
    EXPECT_TRUE(done.ok() && *done) << done.status();
  }
  EXPECT_TRUE(backend->Synchronize().ok());
}

TYPED_TEST(LtProductTest, SaysWhatItHasNot) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  GuardedBuffer<TypeParam> memory(*backend, Values(1000, 1));
  const auto run = [&](int64_t columns, int64_t inner, size_t first) -> bool {
    const auto done = backend->Run(GeluOfBias(memory.span().data() + first, columns, inner));
    EXPECT_TRUE(done.ok()) << done.status();
    return *done;
  };
  EXPECT_TRUE(run(16, 16, 0));
  EXPECT_TRUE(run(16, 16, 0)) << "and again";
  EXPECT_FALSE(run(16, 16, 1)) << "memory between 16 bytes";
  EXPECT_FALSE(run(9, 16, 0)) << "rows between 16 bytes";
  EXPECT_FALSE(run(16, 9, 0));
  EXPECT_EQ(run(12, 16, 0), false) << "a stride that the library refuses";
  EXPECT_TRUE(backend->Synchronize().ok());
}

}  // namespace
}  // namespace longhaul::compute::cuda
