#include "compute/backend/cpu/simd/kernels.h"

#include <algorithm>
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
using CpuTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsTest, CpuTypes);

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

// Those with fused multiply-add, or those without.
template <typename T>
std::vector<InstructionSet> Sets(bool fused) {
  std::vector<InstructionSet> sets = Sets();
  std::erase_if(
      sets, [&](const InstructionSet& set) { return (Of<T>(set).multiply != nullptr) != fused; });
  return sets;
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
    Attention();
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
    Record(kernels_.sum_of_exponentials(x_.data(), T{2}, n_));
    Record(kernels_.exponentials(x_.data(), T{2}, out.data(), n_));
    Record(out);
    Record(kernels_.sum_of_squares(x_.data(), n_));
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

  // One head whose context and width have n_ elements; the second time gradients are added.
  void Attention() {
    const int64_t width = n_ < 100 ? 1 : 37, context = n_ / width;
    const int64_t padded = (width + kAttentionColumns - 1) / kAttentionColumns * kAttentionColumns;
    std::vector<T> parts[8];
    const auto part = [&](int i, int64_t elements) {
      parts[i].resize(static_cast<size_t>(elements));
      return parts[i].data();
    };
    const AttentionHead<T> head{
        context,
        width,
        padded,
        width,
        width,
        T{1} / 7,
        x_.data(),
        y_.data(),
        z_.data(),
        {part(0, context * padded), part(1, kAttentionKeys * kAttentionQueries),
         part(2, kAttentionKeys * kAttentionQueries), part(3, kAttentionQueries * padded),
         part(4, kAttentionQueries * padded), part(5, kAttentionQueries * padded),
         part(6, kAttentionQueries * padded), part(7, kAttentionSpareRows * padded)}};
    std::vector<T> out(x_.size()), lse(x_.size()), queries(x_.size()), keys(x_.size()),
        values(x_.size());
    kernels_.attend(head, out.data(), lse.data());
    for (const bool add : {false, true}) {
      kernels_.attend_backward(head, {out.data(), y_.data(), lse.data(), queries.data(),
                                      keys.data(), values.data(), add});
    }
    for (const auto& result : {out, lse, queries, keys, values}) Record(result);
  }

  const Kernels<T>& kernels_;
  const int64_t n_;
  const std::vector<T> x_, y_, z_;
  std::string bytes_;
};

struct ProductCase {
  int64_t m, n, k;
  bool a_transposed, b_transposed, add, bias;
};

// Elements of a matrix in memory, read as it is stored or transposed.
template <typename T>
ProductOperandView<T> View(const std::vector<T>& values, int64_t rows, int64_t columns,
                           bool transposed) {
  return {values.data(), transposed ? rows : columns, transposed};
}
template <typename T>
T At(const ProductOperandView<T>& view, int64_t row, int64_t column) {
  return view.data[view.transposed ? column * view.stride + row : row * view.stride + column];
}

// The definition: sums over kProductDepth in order, each term added by one fused multiply-add,
// then these partial sums in order.
template <typename T>
std::vector<T> ProductByDefinition(const ProductCall<T>& call, std::vector<T> result) {
  for (int64_t row = 0; row < call.m; ++row) {
    for (int64_t column = 0; column < call.n; ++column) {
      T& element = result[static_cast<size_t>(row * call.n + column)];
      for (int64_t begin = 0; begin < call.k; begin += kProductDepth) {
        T sum = 0;
        for (int64_t p = begin; p < std::min(call.k, begin + kProductDepth); ++p) {
          sum = std::fma(At(call.a, row, p), At(call.b, p, column), sum);
        }
        if (begin > 0 || call.add) {
          element += sum;
        } else {
          element = call.bias == nullptr ? sum : call.bias[column] + sum;
        }
      }
    }
  }
  return result;
}

// The definition of a sum of a row: element i goes to lane i % 16, in order; then the upper half of
// the lanes is added to the lower half until one is left.
template <typename S, typename Term>
S RowSumByDefinition(int64_t n, const Term& term) {
  S lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % 16] += term(i);
  for (int half = 8; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// The definition of the sum of a column: of 64 rows each, then of these sums.
template <typename T, typename Term>
T ColumnSumByDefinition(int64_t rows, const Term& term) {
  T total = 0;
  for (int64_t begin = 0; begin < rows; begin += 64) {
    T stretch = 0;
    for (int64_t row = begin; row < std::min(rows, begin + 64); ++row) stretch += term(row);
    total += stretch;
  }
  return total;
}

constexpr int64_t kTraceLengths[] = {1, 2, 7, 15, 16, 17, 31, 33, 48, 63, 100, 1000, 2055};

// Builds with fused multiply-add, and those without.
TYPED_TEST(KernelsTest, InstructionSetsGiveTheSameBits) {
  for (const bool fused : {false, true}) {
    const std::vector<InstructionSet> sets = Sets<TypeParam>(fused);
    for (const int64_t n : kTraceLengths) {
      for (const InstructionSet& set : sets) {
        EXPECT_TRUE(Trace<TypeParam>(Of<TypeParam>(set), n).Run() ==
                    Trace<TypeParam>(Of<TypeParam>(sets[0]), n).Run())
            << set.name << " differs from " << sets[0].name << " for " << n << " elements";
      }
    }
  }
}

// Without fused multiply-add too: these sums have none.
TYPED_TEST(KernelsTest, SumsHaveTheBitsOfTheirDefinition) {
  using T = TypeParam;
  for (const int64_t n : kTraceLengths) {
    const Values left = TestValues(n, 1), right = TestValues(n, 2);
    const std::vector<T> x(left.begin(), left.end()), y(right.begin(), right.end());
    const auto square = [&](int64_t i) { return static_cast<double>(x[i]) * x[i]; };
    for (const InstructionSet& set : Sets()) {
      SCOPED_TRACE(testing::Message() << set.name << " " << n);
      const Kernels<T>& kernels = Of<T>(set);
      EXPECT_EQ(kernels.sum_of_squares(x.data(), n), RowSumByDefinition<double>(n, square));
      std::vector<T> out(x.size());
      const double sum = kernels.exponentials(x.data(), T{2}, out.data(), n);
      double expected = 0;
      for (int64_t begin = 0; begin < n; begin += 1024) {
        expected += RowSumByDefinition<T>(std::min<int64_t>(1024, n - begin),
                                          [&](int64_t i) { return out[begin + i]; });
      }
      EXPECT_EQ(sum, expected);
      EXPECT_EQ(kernels.sum_of_exponentials(x.data(), T{2}, n), expected);
      for (const int64_t columns : {int64_t{1}, int64_t{7}, int64_t{70}}) {
        const int64_t rows = n / columns;
        std::vector<T> sums(static_cast<size_t>(columns), T{5}), centred = sums;
        kernels.add_column_sums({x.data(), columns}, rows, columns, sums.data());
        kernels.add_normalized_column_sums(
            {{x.data(), columns}, {y.data(), columns}, x.data(), y.data()}, rows, columns,
            centred.data());
        for (int64_t c = 0; c < columns; ++c) {
          const auto at = [&](int64_t row) { return x[row * columns + c]; };
          EXPECT_EQ(sums[c], T{5} + ColumnSumByDefinition<T>(rows, at));
          const auto product = [&](int64_t row) {
            return at(row) * ((y[row * columns + c] - x[row]) * y[row]);
          };
          EXPECT_EQ(centred[c], T{5} + ColumnSumByDefinition<T>(rows, product));
        }
      }
    }
  }
}

// Extents around the blocks that the kernels work in; 1024 columns are whole pages apart.
TYPED_TEST(KernelsTest, ProductsHaveTheBitsOfTheirDefinition) {
  for (const ProductCase& c : {ProductCase{1, 1, 1, false, false, false, false},
                               ProductCase{7, 31, 9, true, true, false, true},
                               ProductCase{19, 530, 300, false, true, false, true},
                               ProductCase{19, 530, 300, true, false, true, false},
                               ProductCase{61, 33, 513, true, false, false, false},
                               ProductCase{61, 40, 513, false, false, true, false},
                               ProductCase{97, 16, 256, true, true, false, false},
                               ProductCase{13, 1, 257, false, true, true, false},
                               ProductCase{24, 64, 1024, false, false, false, false}}) {
    const Values left = TestValues(c.m * c.k, 1), right = TestValues(c.k * c.n, 2);
    const std::vector<TypeParam> a(left.begin(), left.end()), b(right.begin(), right.end());
    const std::vector<TypeParam> start(static_cast<size_t>(c.m * c.n), TypeParam{3});
    std::vector<TypeParam> result, workspace(kProductWorkspace);
    ProductCall<TypeParam> call{
        c.m,     c.n, c.k,   View(a, c.m, c.k, c.a_transposed), View(b, c.k, c.n, c.b_transposed),
        nullptr, c.n, c.add, c.bias ? b.data() : nullptr,       workspace.data()};
    const std::vector<TypeParam> expected = ProductByDefinition(call, start);
    for (const InstructionSet& set : Sets<TypeParam>(true)) {
      result = start;
      call.result = result.data();
      Of<TypeParam>(set).multiply(call);
      EXPECT_TRUE(result == expected) << set.name << " " << c.m << " " << c.n << " " << c.k;
    }
  }
}

// Detects a change of bits, whether from an edit, a compiler or a build type: nodes that differ
// here would train different weights without noticing. Other tests say whether the values are
// right.
TYPED_TEST(KernelsTest, BitsAreThoseOfEveryOtherBuild) {
  std::string bytes;
  const std::vector<InstructionSet> fused = Sets<TypeParam>(true);
  if (fused.empty()) GTEST_SKIP() << "this processor has no fused multiply-add";
  for (const int64_t n : kTraceLengths) {
    bytes += Trace<TypeParam>(Of<TypeParam>(fused[0]), n).Run();
  }
  EXPECT_EQ(Sha256Hex(bytes),
            (std::is_same_v<TypeParam, float>)
                ? "80bee8a0d69f62b114e8e0d7aae390bc56d21fb0cdcb56149ed5c5f828098ee9"
                : "865a67214f4bba75ba093f2db5d9132fe34c578ad6d077cc4e9f1bad0f20216b");
}

TYPED_TEST(KernelsTest, BestIsTheLast) {
  EXPECT_EQ(&BestKernels<TypeParam>(), &Of<TypeParam>(Sets().back()));
}

}  // namespace
}  // namespace longhaul::compute
