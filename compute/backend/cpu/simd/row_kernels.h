// Kernels that reduce a row. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ROW_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ROW_KERNELS_H_

#include "compute/backend/cpu/simd/elementwise_kernels.h"
#include "compute/backend/cpu/simd/exponential.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

template <typename T>
T MaxOfRow(const T* input, int64_t n) {
  const T lowest = -static_cast<T>(__builtin_inf());
  Lanes<T> largest = Fill(lowest);
  ForLanes(n, [&](int64_t i, auto count) {
    largest = Map<T>([](Register<T> a, Register<T> b) { return b > a ? b : a; }, largest,
                     Load(input + i, count, lowest));
  });
  return FoldLanes(largest, [](Register<T> a, Register<T> b) { return b > a ? b : a; });
}

// Sums longer than this continue in double, so that rows as long as a vocabulary stay accurate.
inline constexpr int64_t kStretch = 1024;

// Sum of exp(input - shift); `keep(i, exponentials, count)` may store them.
template <typename T, typename Keep>
inline __attribute__((always_inline)) double SumExponentials(const T* input, T shift, int64_t n,
                                                             const Keep& keep) {
  const Lanes<T> shifts = Fill(shift);
  const T lowest = -static_cast<T>(__builtin_inf());
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kStretch) {
    Lanes<T> sum = Fill(T{0});
    const int64_t length = n - begin < kStretch ? n - begin : kStretch;
    ForLanes(length, [&](int64_t i, auto count) {
      const Lanes<T> exponentials = Map<T>([](Register<T> x) { return Exponential<T>(x); },
                                           Load(input + begin + i, count, lowest) - shifts);
      keep(begin + i, exponentials, count);
      sum = sum + exponentials;
    });
    total += static_cast<double>(SumOfLanes(sum));
  }
  return total;
}

template <typename T>
double SumOfExponentials(const T* input, T shift, int64_t n) {
  return SumExponentials(input, shift, n, [](int64_t, const Lanes<T>&, auto) {});
}

template <typename T>
double Exponentials(const T* input, T shift, T* output, int64_t n) {
  return SumExponentials(input, shift, n, [&](int64_t i, const Lanes<T>& exponentials, auto count) {
    Store(output + i, exponentials, count);
  });
}

template <typename T>
RowStatistics<T> LayerNormRow(const T* input, const T* weight, const T* bias, T epsilon, T* output,
                              int64_t width) {
  Lanes<T> sum = Fill(T{0});
  ForLanes(width, [&](int64_t i, auto count) { sum = sum + Load(input + i, count, T{0}); });
  const T mean = SumOfLanes(sum) / static_cast<T>(width);
  const Lanes<T> means = Fill(mean);

  Lanes<T> squares = Fill(T{0});
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> centred = Load(input + i, count, mean) - means;
    squares = squares + centred * centred;
  });
  const T variance = SumOfLanes(squares) / static_cast<T>(width);
  const T inverse_deviation = T{1} / SquareRoot(variance + epsilon);

  const Lanes<T> scales = Fill(inverse_deviation);
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> normalized = (Load(input + i, count, T{0}) - means) * scales;
    Store(output + i, normalized * Load(weight + i, count, T{0}) + Load(bias + i, count, T{0}),
          count);
  });
  return {mean, inverse_deviation};
}

template <typename T>
void LayerNormRowGradient(const T* input, const T* weight, const RowStatistics<T>& statistics,
                          const T* output_gradient, T* input_gradient, int64_t width) {
  const Lanes<T> means = Fill(statistics.mean), scales = Fill(statistics.inverse_deviation);
  Lanes<T> sum = Fill(T{0}), product_sum = Fill(T{0});
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> normalized = (Load(input + i, count, statistics.mean) - means) * scales;
    const Lanes<T> gradient =
        Load(output_gradient + i, count, T{0}) * Load(weight + i, count, T{0});
    sum = sum + gradient;
    product_sum = product_sum + gradient * normalized;
  });
  const Lanes<T> mean_gradient = Fill(SumOfLanes(sum) / static_cast<T>(width));
  const Lanes<T> mean_product = Fill(SumOfLanes(product_sum) / static_cast<T>(width));
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> normalized = (Load(input + i, count, T{0}) - means) * scales;
    const Lanes<T> gradient =
        Load(output_gradient + i, count, T{0}) * Load(weight + i, count, T{0});
    Store(input_gradient + i, scales * (gradient - mean_gradient - normalized * mean_product),
          count);
  });
}

template <typename T>
T RmsNormRow(const T* input, const T* weight, T epsilon, T* output, int64_t width) {
  Lanes<T> squares = Fill(T{0});
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> values = Load(input + i, count, T{0});
    squares = squares + values * values;
  });
  const T mean_square = SumOfLanes(squares) / static_cast<T>(width);
  const T inverse_root = T{1} / SquareRoot(mean_square + epsilon);
  const Lanes<T> scales = Fill(inverse_root);
  ForLanes(width, [&](int64_t i, auto count) {
    Store(output + i, Load(input + i, count, T{0}) * scales * Load(weight + i, count, T{0}), count);
  });
  return inverse_root;
}

template <typename T>
void RmsNormRowGradient(const T* input, const T* weight, T inverse_root, const T* output_gradient,
                        T* input_gradient, int64_t width) {
  const Lanes<T> scales = Fill(inverse_root);
  Lanes<T> product_sum = Fill(T{0});
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> gradient =
        Load(output_gradient + i, count, T{0}) * Load(weight + i, count, T{0});
    product_sum = product_sum + gradient * (Load(input + i, count, T{0}) * scales);
  });
  const Lanes<T> mean_product = Fill(SumOfLanes(product_sum) / static_cast<T>(width));
  ForLanes(width, [&](int64_t i, auto count) {
    const Lanes<T> normalized = Load(input + i, count, T{0}) * scales;
    const Lanes<T> gradient =
        Load(output_gradient + i, count, T{0}) * Load(weight + i, count, T{0});
    Store(input_gradient + i, scales * (gradient - normalized * mean_product), count);
  });
}

typedef double DoubleRegister __attribute__((vector_size(LONGHAUL_REGISTER_BYTES)));
typedef float HalfRegister
    __attribute__((vector_size(LONGHAUL_REGISTER_BYTES / 2), aligned(4), may_alias));

inline Lanes<double> LoadAsDouble(const float* from) {
  Lanes<double> result;
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<double>::kParts; ++p) {
    result.part[p] = __builtin_convertvector(
        *reinterpret_cast<const HalfRegister*>(from + p * Lanes<double>::kPartLanes),
        DoubleRegister);
  }
  return result;
}
inline Lanes<double> LoadAsDouble(const double* from) { return Load(from); }

template <typename T>
double SumOfSquaresOfRow(const T* values, int64_t n) {
  Lanes<double> sum = Fill(0.0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes<double> lanes = LoadAsDouble(values + i);
    sum = sum + lanes * lanes;
  }
  double last[kLanes] = {};
  for (int64_t j = i; j < n; ++j) last[j - i] = static_cast<double>(values[j]);
  const Lanes<double> lanes = Load(last);
  return SumOfLanes(sum + lanes * lanes);
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ROW_KERNELS_H_
