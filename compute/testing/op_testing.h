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

// Every operator's test runs its one body for each element type and each of these backends.
using ElementTypes = ::testing::Types<float, double>;
std::vector<std::unique_ptr<Backend>> TestBackends();
// ThreadSanitizer does not know the emulation's fibers, which are of one thread anyway.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kHasTestCuda = false;
#else
inline constexpr bool kHasTestCuda = true;
#endif
// The CUDA backend of this build of the tests: emulated, or of a card.
std::unique_ptr<Backend> TestCudaBackend();

// Norm-wise distance to PyTorch's float64 results.
template <typename T>
inline constexpr double kGoldenTolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;

// |actual - expected| / |expected| in the 2-norm, where an expected norm below 1e-3 counts as 1e-3:
// the reference has rounding noise in place of zeros. Infinite if the sizes differ or a value is
// not finite.
double RelativeError(const Values& actual, const Values& expected);

// Pseudo-random values in [-1, 1) that float holds exactly.
Values TestValues(int64_t count, uint32_t seed);

double DotProduct(const Values& a, const Values& b);

// Gradient of f at x by central differences.
Values NumericalGradient(absl::FunctionRef<double(const Values&)> f, Values x);
// What analytic gradients in double must agree to.
inline constexpr double kDifferenceTolerance = 1e-6;

// Runs with 1, 2, 3 and 4 threads, several times with more than one, and expects equal bits; and
// twice on CUDA, whose bits need not be those of the CPU but must be the same again.
void ExpectThreadsAgree(absl::FunctionRef<std::vector<Values>(Backend&)> run);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_TESTING_OP_TESTING_H_
