// Matrix products with fused multiply-add, blocked and packed as in Goto and van de Geijn 2008,
// section 4. An element's bits depend on nothing but its row, its column and kProductDepth: not on
// the extents of the product, the tile it is in, or the width of registers. Included through
// kernel_table.h, by builds whose instruction set has fused multiply-add.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_

#include <immintrin.h>

#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

#if LONGHAUL_REGISTER_BYTES == 64
inline Register<float> MultiplyAdd(Register<float> a, Register<float> b, Register<float> c) {
  return (Register<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
inline Register<double> MultiplyAdd(Register<double> a, Register<double> b, Register<double> c) {
  return (Register<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#else
inline Register<float> MultiplyAdd(Register<float> a, Register<float> b, Register<float> c) {
  return (Register<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline Register<double> MultiplyAdd(Register<double> a, Register<double> b, Register<double> c) {
  return (Register<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif

template <typename T>
inline Register<T> LoadRegister(const T* from) {
  return *reinterpret_cast<const typename RegisterOf<T>::Unaligned*>(from);
}
template <typename T>
inline void StoreRegister(T* to, Register<T> values) {
  *reinterpret_cast<typename RegisterOf<T>::Unaligned*>(to) = values;
}

// A block of the result that stays in registers: kRows x kColumns.
template <typename T>
struct ResultBlock {
  static constexpr int kVector = LONGHAUL_REGISTER_BYTES / static_cast<int>(sizeof(T));
  static constexpr int kColumns = 2 * kVector;
  static constexpr int kRows = LONGHAUL_REGISTER_BYTES == 64 ? 8 : 6;
  Register<T> sums[kRows][2];
};

// sums = left [kRows, depth] * right [depth, kColumns]. Left element (r, p) is
// left[r * row_step + p * kDepthStep].
template <typename T, int kDepthStep>
inline __attribute__((always_inline)) void MultiplyBlock(const T* left, int64_t row_step,
                                                         const T* right, int64_t depth,
                                                         ResultBlock<T>& block) {
  constexpr int kRows = ResultBlock<T>::kRows, kVector = ResultBlock<T>::kVector;
  Register<T> sums[kRows][2] = {};
  for (int64_t p = 0; p < depth; ++p) {
    const Register<T> first = LoadRegister(right + p * 2 * kVector);
    const Register<T> second = LoadRegister(right + p * 2 * kVector + kVector);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Register<T> factor = Splat<T>(left[r * row_step + p * kDepthStep]);
      sums[r][0] = MultiplyAdd(factor, first, sums[r][0]);
      sums[r][1] = MultiplyAdd(factor, second, sums[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    block.sums[r][0] = sums[r][0];
    block.sums[r][1] = sums[r][1];
  }
}

// Where a block goes: rows x columns of it, from `result` on.
template <typename T>
struct BlockTarget {
  T* result;
  int64_t stride;
  int64_t rows, columns;
  bool add;       // to what is there
  const T* bias;  // of each column; not where `add`, and null for none
};

template <typename T>
void StoreBlock(const ResultBlock<T>& block, T factor, const BlockTarget<T>& target) {
  constexpr int kVector = ResultBlock<T>::kVector;
  for (int64_t r = 0; r < target.rows; ++r) {
    T* row = target.result + r * target.stride;
    for (int v = 0; v < 2; ++v) {
      const Register<T> values = block.sums[r][v] * factor;
      const int64_t columns = target.columns - v * kVector;
      T* to = row + v * kVector;
      const T* addend = target.add               ? to
                        : target.bias == nullptr ? nullptr
                                                 : target.bias + v * kVector;
      if (columns >= kVector) {
        StoreRegister(to, addend == nullptr ? values : LoadRegister(addend) + values);
      } else {
        for (int64_t c = 0; c < columns; ++c) {
          to[c] = addend == nullptr ? values[c] : addend[c] + values[c];
        }
      }
    }
  }
}

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

// A panel [depth, kColumns] of the right matrix, whose element (p, c) is from[p * stride + c] or,
// transposed, from[c * stride + p]. Columns that do not exist become zero.
template <typename T>
void PackRight(const T* from, int64_t stride, bool transposed, int64_t depth, int64_t columns,
               T* to) {
  constexpr int kColumns = ResultBlock<T>::kColumns;
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

// Rows of the left matrix, as MultiplyBlock reads them.
template <typename T>
struct LeftPanel {
  const T* data;
  int64_t row_step;
};

// kRows columns of the left matrix as it is stored, which is read transposed, twice: whole cache
// lines, at strides that leave none of them in the cache for a second pass.
template <typename T>
void PackLeftPair(const T* from, int64_t stride, int64_t depth, int64_t rows, T* to) {
  constexpr int kRows = ResultBlock<T>::kRows;
  T* const second = to + kRows * depth;
  for (int64_t p = 0; p < depth; ++p) {
    CopyOrZero<kRows>(from + p * stride, rows, to + p * kRows);
    CopyOrZero<kRows>(from + p * stride + kRows, rows - kRows, second + p * kRows);
  }
}

// The panel of kRows rows from `row` on, which counts from the first of a pair. A matrix that is
// stored as it is multiplied is read where it is; one that is read transposed, and the last rows,
// are copied to `to`, where rows that do not exist are zero.
template <typename T>
LeftPanel<T> PanelOf(const ProductOperandView<T>& left, int64_t row, int64_t rows, int64_t begin,
                     int64_t depth, T* to) {
  constexpr int kRows = ResultBlock<T>::kRows;
  if (left.transposed) {
    const bool is_second = row / kRows % 2 != 0;
    if (!is_second) {
      PackLeftPair(left.data + begin * left.stride + row, left.stride, depth, rows, to);
    }
    return {is_second ? to + kRows * depth : to, 1};
  }
  const T* from = left.data + row * left.stride + begin;
  if (rows >= kRows) return {from, left.stride};
  for (int r = 0; r < kRows; ++r) {
    for (int64_t p = 0; p < depth; ++p) {
      to[r * kProductDepth + p] = r < rows ? from[r * left.stride + p] : T{0};
    }
  }
  return {to, kProductDepth};
}

// The columns and the part of the depth that are packed at a time.
struct PackedRange {
  int64_t column, columns;
  int64_t begin, depth;
};

template <typename T>
void MultiplyPacked(const ProductCall<T>& call, const PackedRange& range, const T* right, T* left) {
  using Block = ResultBlock<T>;
  Block block;
  const bool add = call.add || range.begin > 0;
  for (int64_t row = 0; row < call.m; row += Block::kRows) {
    const int64_t rest = call.m - row;
    const int64_t rows = rest < Block::kRows ? rest : Block::kRows;
    const LeftPanel<T> panel = PanelOf(call.a, row, rest, range.begin, range.depth, left);
    for (int64_t c = 0; c < range.columns; c += Block::kColumns) {
      const int64_t columns =
          range.columns - c < Block::kColumns ? range.columns - c : Block::kColumns;
      if (call.a.transposed) {
        MultiplyBlock<T, Block::kRows>(panel.data, 1, right + c * range.depth, range.depth, block);
      } else {
        MultiplyBlock<T, 1>(panel.data, panel.row_step, right + c * range.depth, range.depth,
                            block);
      }
      T* result = call.result + row * call.result_stride + range.column + c;
      const T* bias = add || call.bias == nullptr ? nullptr : call.bias + range.column + c;
      StoreBlock<T>(block, call.factor, {result, call.result_stride, rows, columns, add, bias});
    }
  }
}

template <typename T>
void MultiplyMatrices(const ProductCall<T>& call) {
  constexpr int kColumns = ResultBlock<T>::kColumns;
  static_assert(kProductColumns % kColumns == 0);
  static_assert(2 * ResultBlock<T>::kRows * kProductDepth <= kProductLeftElements);
  T* const right = call.workspace;
  T* const left = right + kProductDepth * kProductColumns;
  for (int64_t column = 0; column < call.n; column += kProductColumns) {
    PackedRange range = {};
    range.column = column;
    range.columns = call.n - column < kProductColumns ? call.n - column : kProductColumns;
    for (range.begin = 0; range.begin < call.k; range.begin += kProductDepth) {
      range.depth = call.k - range.begin < kProductDepth ? call.k - range.begin : kProductDepth;
      for (int64_t c = 0; c < range.columns; c += kColumns) {
        const int64_t at = column + c;
        const T* from = call.b.data + (call.b.transposed ? at * call.b.stride + range.begin
                                                         : range.begin * call.b.stride + at);
        PackRight(from, call.b.stride, call.b.transposed, range.depth, range.columns - c,
                  right + c * range.depth);
      }
      MultiplyPacked(call, range, right, left);
    }
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_
