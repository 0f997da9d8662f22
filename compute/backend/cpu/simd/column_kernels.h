// Kernels that sum the columns of a matrix. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_COLUMN_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_COLUMN_KERNELS_H_

#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Short sums first: the error of a long sum grows with the number of its terms.
inline constexpr int64_t kRowStretch = 64;

// sums[c .. c + count) += sum over rows of term(row).
template <typename T, typename Count, typename Term>
inline __attribute__((always_inline)) void AddSumOverRows(int64_t rows, T* sums, Count count,
                                                          const Term& term) {
  Lanes<T> total = Fill(T{0});
  for (int64_t begin = 0; begin < rows; begin += kRowStretch) {
    const int64_t end = rows - begin < kRowStretch ? rows : begin + kRowStretch;
    Lanes<T> stretch = Fill(T{0});
    for (int64_t row = begin; row < end; ++row) stretch = stretch + term(row);
    total = total + stretch;
  }
  Store(sums, Load(sums, count, T{0}) + total, count);
}

template <typename T>
void AddColumnSums(const MatrixView<T>& matrix, int64_t rows, int64_t columns, T* sums) {
  ForLanes(columns, [&](int64_t c, auto count) {
    AddSumOverRows(rows, sums + c, count, [&](int64_t row) {
      return Load(matrix.data + row * matrix.stride + c, count, T{0});
    });
  });
}

template <typename T>
void AddNormalizedColumnSums(const NormalizedProduct<T>& product, int64_t rows, int64_t columns,
                             T* sums) {
  const MatrixView<T> gradient = product.gradient, input = product.input;
  const auto add = [&](const auto& centre) {
    ForLanes(columns, [&](int64_t c, auto count) {
      AddSumOverRows(rows, sums + c, count, [&](int64_t row) {
        const Lanes<T> centred =
            centre(row, Load(input.data + row * input.stride + c, count, T{0}));
        return Load(gradient.data + row * gradient.stride + c, count, T{0}) *
               (centred * Fill(product.inverse_deviations[row]));
      });
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
