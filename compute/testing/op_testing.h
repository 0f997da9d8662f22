// What the tests of the operators share: backends to run on, closeness, finite differences, and the
// proof that threads do not change bits.
#ifndef LONGHAUL_COMPUTE_TESTING_OP_TESTING_H_
#define LONGHAUL_COMPUTE_TESTING_OP_TESTING_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compute/backend/backend.h"
#include "gtest/gtest.h"

namespace longhaul::compute {

using Values = std::vector<double>;

// Every operator's test runs its one body for each element type and each backend that has it.
// ThreadSanitizer does not know the emulation's fibers, which are of one thread anyway.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kHasTestCuda = false;
using ElementTypes = ::testing::Types<float, double>;
#else
inline constexpr bool kHasTestCuda = true;
using ElementTypes = ::testing::Types<float, double, BFloat16>;
#endif
// CPUs compute in floats.
template <typename T>
inline constexpr bool kHasCpuKernels = !std::is_same_v<T, BFloat16>;

// The CUDA backend of this build of the tests: emulated, or of a card.
std::unique_ptr<Backend> TestCudaBackend();
std::vector<std::unique_ptr<Backend>> TestBackends(bool with_cpus = true);
template <typename T>
std::vector<std::unique_ptr<Backend>> TestBackends() {
  return TestBackends(kHasCpuKernels<T>);
}
// For what one backend shows: the CPU where it can.
template <typename T>
std::unique_ptr<Backend> TestBackend(int threads) {
  return kHasCpuKernels<T> ? MakeCpuBackend(threads) : TestCudaBackend();
}

// Norm-wise distance to PyTorch's float64 results. BFloat16 keeps 8 bits: inputs and outputs are
// off by up to 1/512 of themselves each, about 0.1 % in the norm, and an operator such as attention
// passes the errors of several inputs on; sums are in floats, so that nothing grows with the shape.
template <typename T>
inline constexpr double kGoldenTolerance = 1e-10;
template <>
inline constexpr double kGoldenTolerance<float> = 1e-5;
template <>
inline constexpr double kGoldenTolerance<BFloat16> = 1e-2;

// The values as T holds them.
template <typename T>
std::vector<double> Rounded(std::vector<double> values) {
  for (double& value : values) value = static_cast<Wide<T>>(static_cast<T>(value));
  return values;
}

// |actual - expected| / |expected| in the 2-norm, where an expected norm below 1e-3 counts as 1e-3:
// the reference has rounding noise in place of zeros. Infinite if the sizes differ or a value is
// not finite.
double RelativeError(const Values& actual, const Values& expected);

// Pseudo-random values in [-1, 1) that float holds exactly.
Values TestValues(int64_t count, uint32_t seed);

// Rows of `width` values put `pitch` apart, with NaN between them; and back, which fails the test
// if something else than NaN is between them.
Values WithPitch(const Values& rows, int64_t width, int64_t pitch);
Values WithoutPitch(const Values& values, int64_t width, int64_t pitch);

double DotProduct(const Values& a, const Values& b);

// Gradient of f at x by central differences.
Values NumericalGradient(absl::FunctionRef<double(const Values&)> f, Values x);
// What analytic gradients in double must agree to.
inline constexpr double kDifferenceTolerance = 1e-6;

// Runs with 1, 2, 3 and 4 threads, several times with more than one, and expects equal bits; and
// twice on CUDA, whose bits need not be those of the CPU but must be the same again.
void ExpectThreadsAgree(bool with_cpus, absl::FunctionRef<std::vector<Values>(Backend&)> run);
template <typename T>
void ExpectThreadsAgree(absl::FunctionRef<std::vector<Values>(Backend&)> run) {
  ExpectThreadsAgree(kHasCpuKernels<T>, run);
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_TESTING_OP_TESTING_H_
