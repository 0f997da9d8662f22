#include "compute/testing/op_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/rng.h"

namespace longhaul::compute {
namespace {

bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace

std::unique_ptr<Backend> TestCudaBackend() {
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeCudaBackend(0, RealClock());
  LH_CHECK(backend.ok(), backend.status().ToString());
  return *std::move(backend);
}

std::vector<std::unique_ptr<Backend>> TestBackends(bool with_cpus) {
  std::vector<std::unique_ptr<Backend>> backends;
  if (with_cpus) {
    backends.push_back(MakeCpuBackend(1));
    backends.push_back(MakeCpuBackend(3));
  }
  if (kHasTestCuda) backends.push_back(TestCudaBackend());
  return backends;
}

double RelativeError(const Values& actual, const Values& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size()) return kInfinity;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  constexpr double kNormMin = 1e-3;
  const double error = std::sqrt(difference) / std::max(std::sqrt(norm), kNormMin);
  return std::isfinite(error) ? error : kInfinity;
}

Values TestValues(int64_t count, uint32_t seed) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = RandomBits(seed, RandomStream::kInitialWeights, 0, 0, i)[0];
    values[i] = static_cast<double>(bits >> 8) * 0x1p-23 - 1;
  }
  return values;
}

Values WithPitch(const Values& rows, int64_t width, int64_t pitch) {
  const size_t count = rows.size() / static_cast<size_t>(width);
  Values values(count * static_cast<size_t>(pitch), std::numeric_limits<double>::quiet_NaN());
  for (size_t row = 0; row < count; ++row) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row) * width;
    std::copy(from, from + width, values.begin() + static_cast<std::ptrdiff_t>(row) * pitch);
  }
  return values;
}

Values WithoutPitch(const Values& values, int64_t width, int64_t pitch) {
  Values rows;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % pitch;
    if (column < width) {
      rows.push_back(values[i]);
    } else {
      EXPECT_TRUE(std::isnan(values[i])) << "written " << column << " after a row's begin";
    }
  }
  return rows;
}

double DotProduct(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Values NumericalGradient(absl::FunctionRef<double(const Values&)> f, Values x) {
  constexpr double kStep = 1e-5;
  Values gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = f(x);
    x[i] = at - kStep;
    const double below = f(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

namespace {

void ExpectSameBits(const std::vector<Values>& actual, const std::vector<Values>& expected,
                    const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(SameBits(actual[i], expected[i])) << "result " << i << " " << where;
  }
}

}  // namespace

void ExpectThreadsAgree(bool with_cpus, absl::FunctionRef<std::vector<Values>(Backend&)> run) {
  if (with_cpus) {
    const std::vector<Values> expected = run(*MakeCpuBackend(1));
    for (const int threads : {2, 3, 4}) {
      const std::unique_ptr<Backend> backend = MakeCpuBackend(threads);
      for (int repeat = 0; repeat < 3; ++repeat) {
        ExpectSameBits(run(*backend), expected, absl::StrCat("with ", threads, " threads"));
      }
    }
  }
  if (!kHasTestCuda) return;
  const std::unique_ptr<Backend> cuda = TestCudaBackend();
  const std::vector<Values> once = run(*cuda);
  ExpectSameBits(run(*cuda), once, "of CUDA, twice");
}

}  // namespace longhaul::compute
