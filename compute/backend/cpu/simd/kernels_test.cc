#include "compute/backend/cpu/simd/kernels.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "compute/testing/op_testing.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

template <typename T>
class KernelsTest : public ::testing::Test {};
TYPED_TEST_SUITE(KernelsTest, ElementTypes);

template <typename T>
const Kernels<T>& Of(const InstructionSet& set) {
  if constexpr (std::is_same_v<T, float>) {
    return *set.float_kernels;
  } else {
    return *set.double_kernels;
  }
}

std::vector<InstructionSet> Sets() {
  InstructionSet sets[kInstructionSetsMax];
  const int count = SupportedInstructionSets(sets);
  return {sets, sets + count};
}

template <typename T>
T Exponential(T x) {
  T result = 0;
  BestKernels<T>().exponentials(&x, 0, &result, 1);
  return result;
}

template <typename T>
double ErrorInUlps(T x) {
  const long double exact = std::exp(static_cast<long double>(x));
  const T rounded = static_cast<T>(exact);
  const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(Exponential(x)) - exact) /
                             static_cast<long double>(ulp));
}

// Including results that are subnormal.
TYPED_TEST(KernelsTest, ExponentialAgreesWithTheLibrary) {
  const bool is_float = std::is_same_v<TypeParam, float>;
  const double lowest = is_float ? -103 : -744, highest = is_float ? 88.7 : 709.7;
  for (double x = lowest; x < highest; x += (highest - lowest) / 40009) {
    ASSERT_LE(ErrorInUlps(static_cast<TypeParam>(x)), 2) << x;
  }
  for (double x = 1; x > 1e-12; x *= 0.97) {
    ASSERT_LE(ErrorInUlps(static_cast<TypeParam>(x)), 2) << x;
    ASSERT_LE(ErrorInUlps(static_cast<TypeParam>(-x)), 2) << x;
  }
}

TYPED_TEST(KernelsTest, ExponentialSpecialValues) {
  constexpr TypeParam kInfinity = std::numeric_limits<TypeParam>::infinity();
  EXPECT_EQ(Exponential<TypeParam>(0), 1);
  EXPECT_EQ(Exponential<TypeParam>(-kInfinity), 0);
  EXPECT_EQ(Exponential<TypeParam>(-20000), 0);
  EXPECT_EQ(Exponential<TypeParam>(kInfinity), kInfinity);
  EXPECT_EQ(Exponential<TypeParam>(20000), kInfinity);
  EXPECT_TRUE(std::isnan(Exponential<TypeParam>(std::numeric_limits<TypeParam>::quiet_NaN())));
}

// Everything that the kernels compute from three arrays of n elements, as bytes.
template <typename T>
class Trace {
 public:
  Trace(const Kernels<T>& kernels, int64_t n)
      : kernels_(kernels), n_(n), x_(Make(1)), y_(Make(2)), z_(Make(3)) {}

  std::string Run() {
    Elementwise();
    Rows();
    Columns();
    return bytes_;
  }

 private:
  std::vector<T> Make(uint32_t seed) const {
    const Values values = TestValues(n_, seed);
    std::vector<T> result(values.begin(), values.end());
    for (T& value : result) value *= 7;
    return result;
  }
  template <typename V>
  void Record(const V& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Record(const std::vector<T>& values) {
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  void Elementwise() {
    std::vector<T> out(x_.size());
    kernels_.add(x_.data(), y_.data(), out.data(), n_);
    Record(out);
    kernels_.scale(x_.data(), T{3} / 7, out.data(), n_);
    Record(out);
    kernels_.gelu(x_.data(), out.data(), n_);
    Record(out);
    kernels_.gelu_backward(x_.data(), y_.data(), out.data(), n_);
    Record(out);
    kernels_.swiglu(x_.data(), y_.data(), out.data(), n_);
    Record(out);
    std::vector<T> second_out(x_.size());
    kernels_.swiglu_backward(x_.data(), y_.data(), z_.data(), out.data(), second_out.data(), n_);
    Record(out);
    Record(second_out);
    kernels_.rotate(y_.data(), z_.data(), T{-1}, x_.data(), out.data(), n_ / 2);
    Record(out);
    const DropoutDraw<T> draw{{1, 2}, {3, 4, 5}, 0x40000000, T{4} / 3};
    kernels_.drop(draw, 128, x_.data(), out.data(), n_);
    Record(out);
    const AdamWFactors<T> factors{T(0.25), T(0.999), T(0.1),  T(0.95),
                                  T(0.05), T(0.7),   T(1e-8), T(0.01)};
    std::vector<T> weights = x_, first = y_, second = z_;
    for (T& value : second) value *= value;
    kernels_.adamw(factors, out.data(), weights.data(), first.data(), second.data(), n_);
    Record(weights);
    Record(first);
    Record(second);
  }

  void Rows() {
    std::vector<T> out(x_.size());
    Record(kernels_.max(x_.data(), n_));
    Record(kernels_.dot(x_.data(), y_.data(), n_));
    Record(kernels_.sum_of_exponentials(x_.data(), T{2}, n_));
    Record(kernels_.exponentials(x_.data(), T{2}, out.data(), n_));
    Record(out);
    Record(kernels_.sum_of_squares(x_.data(), n_));
    std::vector<T> scores = x_, gradients = y_;
    scores.resize((x_.size() + 31) / 16 * 16, T{5});
    gradients.resize(scores.size(), T{5});
    const int64_t padded = static_cast<int64_t>(scores.size());
    const RowSoftmax<T> softmax = kernels_.visible_exponentials(scores.data(), n_, padded);
    Record(softmax.largest);
    Record(softmax.sum);
    Record(scores);
    kernels_.visible_softmax_backward(scores.data(), gradients.data(), {T{2}, T{1} / 3, T{1} / 7},
                                      n_, padded);
    Record(scores);
    Record(gradients);
    const RowStatistics<T> statistics =
        kernels_.layer_norm(x_.data(), y_.data(), z_.data(), T(1e-5), out.data(), n_);
    Record(statistics.mean);
    Record(statistics.inverse_deviation);
    Record(out);
    kernels_.layer_norm_backward(x_.data(), y_.data(), statistics, z_.data(), out.data(), n_);
    Record(out);
    const T inverse_root = kernels_.rms_norm(x_.data(), y_.data(), T(1e-5), out.data(), n_);
    Record(inverse_root);
    Record(out);
    kernels_.rms_norm_backward(x_.data(), y_.data(), inverse_root, z_.data(), out.data(), n_);
    Record(out);
  }

  void Columns() {
    // As matrices with rows of several lengths; the elements left over are not read.
    for (int64_t columns = 1; columns <= 40 && columns <= n_; columns += 3) {
      const int64_t rows = n_ / columns;
      std::vector<T> sums(static_cast<size_t>(columns), T{5});
      kernels_.add_column_sums({x_.data(), columns}, rows, columns, sums.data());
      Record(sums);
      kernels_.add_normalized_column_sums(
          {{x_.data(), columns}, {y_.data(), columns}, z_.data(), y_.data()}, rows, columns,
          sums.data());
      Record(sums);
      kernels_.add_normalized_column_sums(
          {{x_.data(), columns}, {y_.data(), columns}, nullptr, y_.data()}, rows, columns,
          sums.data());
      Record(sums);
    }
  }

  const Kernels<T>& kernels_;
  const int64_t n_;
  const std::vector<T> x_, y_, z_;
  std::string bytes_;
};

// Products of matrices of many extents around the blocks that the kernels work in, as bytes.
template <typename T>
std::string ProductTrace(const Kernels<T>& kernels) {
  std::vector<T> workspace(kProductWorkspace);
  std::string bytes;
  for (const int64_t m : {1, 7, 19}) {
    for (const int64_t n : {1, 31, 530}) {
      for (const int64_t k : {1, 9, 300}) {
        for (int form = 0; form < 8; ++form) {
          const Values left = TestValues(m * k, 1), right = TestValues(k * n, 2);
          const std::vector<T> a(left.begin(), left.end()), b(right.begin(), right.end());
          const bool a_transposed = form % 2, b_transposed = form / 2 % 2, add = form / 4;
          std::vector<T> result(static_cast<size_t>(m * n), T{3});
          kernels.multiply({m,
                            n,
                            k,
                            {a.data(), a_transposed ? m : k, a_transposed},
                            {b.data(), b_transposed ? k : n, b_transposed},
                            result.data(),
                            n,
                            add ? T{1} : T{1} / 3,
                            add,
                            add || a_transposed ? nullptr : b.data(),
                            workspace.data()});
          bytes.append(reinterpret_cast<const char*>(result.data()), result.size() * sizeof(T));
        }
      }
    }
  }
  return bytes;
}

constexpr int64_t kTraceLengths[] = {1, 2, 7, 15, 16, 17, 31, 33, 48, 63, 100, 1000, 2055};

TYPED_TEST(KernelsTest, InstructionSetsGiveTheSameBits) {
  const std::vector<InstructionSet> sets = Sets();
  for (const int64_t n : kTraceLengths) {
    const std::string expected = Trace<TypeParam>(Of<TypeParam>(sets[0]), n).Run();
    for (const InstructionSet& set : sets) {
      EXPECT_TRUE(Trace<TypeParam>(Of<TypeParam>(set), n).Run() == expected)
          << set.name << " differs from " << sets[0].name << " for " << n << " elements";
    }
  }
}

TYPED_TEST(KernelsTest, InstructionSetsMultiplyToTheSameBits) {
  const bool is_float = std::is_same_v<TypeParam, float>;
  for (const InstructionSet& set : Sets()) {
    if (Of<TypeParam>(set).multiply == nullptr) continue;
    EXPECT_EQ(Sha256Hex(ProductTrace(Of<TypeParam>(set))),
              is_float ? "407922ce535e26a2711ffee6e3343d38ab8029b6565242bd1436724f1f6ddb66"
                       : "976a7876a99d7c16e9945615e265fbee7d7f65130979e0e651b53671fc63f7ad")
        << set.name;
  }
}

// Detects a change of bits, whether from an edit, a compiler or a build type: nodes that differ
// here would train different weights without noticing. Other tests say whether the values are
// right.
TYPED_TEST(KernelsTest, BitsAreThoseOfEveryOtherBuild) {
  std::string bytes;
  for (const int64_t n : kTraceLengths)
    bytes += Trace<TypeParam>(BestKernels<TypeParam>(), n).Run();
  EXPECT_EQ(Sha256Hex(bytes),
            (std::is_same_v<TypeParam, float>)
                ? "c6ef09d7acb28a5dde24284a304f4008ba2cc128c94bbe54b17f590b4ea14967"
                : "b0e91b27c13042f139561bd65c44b9fe2b6df0ce3f41e1105072482b5ae80afe");
}

TYPED_TEST(KernelsTest, BestIsTheLast) {
  EXPECT_EQ(&BestKernels<TypeParam>(), &Of<TypeParam>(Sets().back()));
}

}  // namespace
}  // namespace longhaul::compute
