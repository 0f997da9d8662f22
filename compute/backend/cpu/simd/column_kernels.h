// Kernels that sum the columns of a matrix. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_COLUMN_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_COLUMN_KERNELS_H_

#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Short sums first: the error of a long sum grows with the number of its terms.
inline constexpr int64_t kRowStretch = 64;

// sums += sums over rows of kGroups * 16 columns; term(row, group) gives 16 of them.
template <int kGroups, typename T, typename Count, typename Term>
inline __attribute__((always_inline)) void AddSumsOverRows(int64_t rows, T* sums, Count count,
                                                           const Term& term) {
  Lanes<T> totals[kGroups] = {};
  for (int64_t begin = 0; begin < rows; begin += kRowStretch) {
    const int64_t end = rows - begin < kRowStretch ? rows : begin + kRowStretch;
    Lanes<T> stretches[kGroups] = {};
    for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) stretches[g] = stretches[g] + term(row, g);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) totals[g] = totals[g] + stretches[g];
  }
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    T* to = sums + g * kLanes;
    Store(to, Load(to, count, T{0}) + totals[g], count);
  }
}

// The same for any number of columns: some lines of a row at a time, since the next row may lie a
// page away. term(row, c, count) gives the 16 columns from c on.
template <typename T, typename Term>
inline __attribute__((always_inline)) void AddSumsOfColumns(int64_t rows, int64_t columns, T* sums,
                                                            const Term& term) {
  constexpr int kGroups = 4;
  int64_t c = 0;
  for (; c + kGroups * kLanes <= columns; c += kGroups * kLanes) {
    AddSumsOverRows<kGroups>(rows, sums + c, Full{}, [&](int64_t row, int group) {
      return term(row, c + group * kLanes, Full{});
    });
  }
  ForLanes(columns - c, [&](int64_t i, auto count) {
    AddSumsOverRows<1>(rows, sums + c + i, count,
                       [&](int64_t row, int) { return term(row, c + i, count); });
  });
}

template <typename T>
void AddColumnSums(const MatrixView<T>& matrix, int64_t rows, int64_t columns, T* sums) {
  AddSumsOfColumns(rows, columns, sums, [&](int64_t row, int64_t c, auto count) {
    return Load(matrix.data + row * matrix.stride + c, count, T{0});
  });
}

template <typename T>
void AddNormalizedColumnSums(const NormalizedProduct<T>& product, int64_t rows, int64_t columns,
                             T* sums) {
  const MatrixView<T> gradient = product.gradient, input = product.input;
  const auto add = [&](const auto& centre) {
    AddSumsOfColumns(rows, columns, sums, [&](int64_t row, int64_t c, auto count) {
      const Lanes<T> centred = centre(row, Load(input.data + row * input.stride + c, count, T{0}));
      return Load(gradient.data + row * gradient.stride + c, count, T{0}) *
             (centred * Fill(product.inverse_deviations[row]));
    });
  };
  if (product.means == nullptr) {
    add([](int64_t, const Lanes<T>& values) { return values; });
  } else {
    add([&](int64_t row, const Lanes<T>& values) { return values - Fill(product.means[row]); });
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_COLUMN_KERNELS_H_
