// Copies parts of matrices into the order in which products read them. Included through
// kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PACK_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PACK_H_

#include "compute/backend/cpu/simd/block_product.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Copies kCount elements, of which the first `count` exist; the others become zero.
template <int kCount, typename T>
inline __attribute__((always_inline)) void CopyOrZero(const T* from, int64_t count, T* to) {
  if (count >= kCount) {
    __builtin_memcpy(to, from, kCount * sizeof(T));
  } else {
    for (int i = 0; i < kCount; ++i) to[i] = i < count ? from[i] : T{0};
  }
}

typedef float Eight __attribute__((vector_size(32)));
typedef float EightUnaligned __attribute__((vector_size(32), aligned(4), may_alias));

// to[p * to_stride + j] = from[j * stride + p] for eight p and eight j, in three rounds of
// shuffles.
inline void TransposeEight(const float* from, int64_t stride, float* to, int64_t to_stride) {
  Eight a[8], b[8];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) a[j] = *reinterpret_cast<const EightUnaligned*>(from + j * stride);
#pragma GCC unroll 4
  for (int j = 0; j < 8; j += 2) {
    b[j] = __builtin_shufflevector(a[j], a[j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[j + 1] = __builtin_shufflevector(a[j], a[j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int j = 0; j < 8; j += 4) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      a[j + 2 * i] = __builtin_shufflevector(b[j + i], b[j + i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[j + 2 * i + 1] =
          __builtin_shufflevector(b[j + i], b[j + i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < 4; ++p) {
    *reinterpret_cast<EightUnaligned*>(to + p * to_stride) =
        __builtin_shufflevector(a[p], a[p + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<EightUnaligned*>(to + (p + 4) * to_stride) =
        __builtin_shufflevector(a[p], a[p + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// A panel [depth, kBlockColumns] of the right matrix, whose element (p, c) is from[p * stride + c]
// or, transposed, from[c * stride + p]. Columns that do not exist become zero.
template <typename T>
void PackRight(const T* from, int64_t stride, bool transposed, int64_t depth, int64_t columns,
               T* to) {
  constexpr int kColumns = kBlockColumns<T>;
  if (!transposed) {
    for (int64_t p = 0; p < depth; ++p) {
      CopyOrZero<kColumns>(from + p * stride, columns, to + p * kColumns);
    }
    return;
  }
  int64_t done = 0;  // columns
  if constexpr (sizeof(T) == sizeof(float)) {
    for (; done + 8 <= columns && done < kColumns; done += 8) {
      int64_t p = 0;
      for (; p + 8 <= depth; p += 8) {
        TransposeEight(from + done * stride + p, stride, to + p * kColumns + done, kColumns);
      }
      for (; p < depth; ++p) {
        for (int64_t c = done; c < done + 8; ++c) to[p * kColumns + c] = from[c * stride + p];
      }
    }
  }
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t c = done; c < kColumns; ++c) {
      to[p * kColumns + c] = c < columns ? from[c * stride + p] : T{0};
    }
  }
}

// Copies the first `rows` of kRows rows, each `depth` long, to `to`, to_step elements apart; the
// others become zero.
template <int kRows, typename T>
__attribute__((noinline)) LeftRows<T, false> CopyLeftRows(const LeftRows<T, false>& from,
                                                          int64_t depth, int64_t rows, T* to,
                                                          int64_t to_step) {
  const uint64_t bytes = static_cast<uint64_t>(depth) * sizeof(T);
  for (int r = 0; r < kRows; ++r) {
    if (r < rows) {
      __builtin_memcpy(to + r * to_step, from.data + r * from.step, bytes);
    } else {
      __builtin_memset(to + r * to_step, 0, bytes);
    }
  }
  return {to, to_step};
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PACK_H_
