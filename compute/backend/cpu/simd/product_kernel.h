// Matrix products, blocked and packed as in Goto and van de Geijn 2008, section 4. An element's
// bits depend on nothing but its row, its column and kProductDepth: not on the extents of the
// product, the tile it is in, or the width of registers. Included through kernel_table.h, by builds
// whose instruction set has fused multiply-add.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_

#include "compute/backend/cpu/simd/block_product.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/pack.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// As many as leave registers for the right matrix and one element of the left.
inline constexpr int kProductRows = LONGHAUL_REGISTER_BYTES == 64 ? 12 : 6;
// Row blocks of a left matrix read transposed that are packed together: whole cache lines of it.
inline constexpr int kPackedBlocks = 4;

// The columns and the part of the depth that are packed at a time.
struct PackedRange {
  int64_t column, columns;
  int64_t begin, depth;
};

// The part of the left matrix that is read next, rows x columns of it as it is stored: brought near
// a few cache lines at a time, since no hardware foresees rows that lie far apart.
template <typename T>
struct PartAhead {
  const T* row;
  int64_t stride;
  int64_t rows, columns;
  int64_t lines_at_once;
  int64_t column = 0;

  inline __attribute__((always_inline)) void Fetch() {
    for (int64_t n = 0; n < lines_at_once && rows > 0; ++n) {
      __builtin_prefetch(row + column);
      column += 64 / static_cast<int64_t>(sizeof(T));
      if (column < columns) continue;
      column = 0;
      row += stride;
      --rows;
    }
  }
};

// So many that `elements` are near once all columns are multiplied.
template <typename T>
inline int64_t LinesAtOnce(int64_t elements, int64_t columns) {
  const int64_t blocks = (columns + kBlockColumns<T> - 1) / kBlockColumns<T>;
  return elements * static_cast<int64_t>(sizeof(T)) / (64 * blocks) + 1;
}

// One block of rows, all columns of the range.
template <typename T, bool kSideBySide>
void MultiplyRows(const ProductCall<T>& call, const PackedRange& range,
                  const LeftRows<T, kSideBySide>& left, int64_t row, PartAhead<T>& ahead) {
  const bool add = call.add || range.begin > 0;
  BlockTarget<T> target = {};
  target.stride = call.result_stride;
  target.rows = AtMost(call.m - row, kProductRows);
  target.add = add;
  for (int64_t c = 0; c < range.columns; c += kBlockColumns<T>) {
    ahead.Fetch();
    target.result = call.result + row * call.result_stride + range.column + c;
    target.columns = AtMost(range.columns - c, kBlockColumns<T>);
    target.bias = add || call.bias == nullptr ? nullptr : call.bias + range.column + c;
    MultiplyBlock<T, kProductRows, kSideBySide>(left, call.workspace + c * range.depth, range.depth,
                                                target);
  }
}

// A left matrix that is stored as it is multiplied: rows at a distance of whole pages would take
// each other's place in the cache.
template <typename T>
void MultiplyStored(const ProductCall<T>& call, const PackedRange& range, T* packed) {
  constexpr int64_t kStride = kProductDepth + 16;
  const bool at_whole_pages = call.a.stride * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  const int64_t lines = LinesAtOnce<T>(kProductRows * range.depth, range.columns);
  for (int64_t row = 0; row < call.m; row += kProductRows) {
    const T* from = call.a.data + row * call.a.stride + range.begin;
    LeftRows<T, false> left = {from, call.a.stride};
    if (at_whole_pages || call.m - row < kProductRows) {
      left = CopyLeftRows<kProductRows>(left, range.depth, call.m - row, packed, kStride);
    }
    PartAhead<T> ahead = {from + kProductRows * call.a.stride, call.a.stride,
                          AtMost(call.m - row - kProductRows, kProductRows), range.depth, lines};
    MultiplyRows(call, range, left, row, ahead);
  }
}

// Columns of the matrix as it is stored, from `from` on, of which `columns` exist.
template <typename T>
void PackLeft(const T* from, int64_t stride, int64_t depth, int64_t columns, T* to) {
  constexpr int kRows = kProductRows;
  for (int64_t p = 0; p < depth; ++p, from += stride, to += kRows) {
    if (columns >= kPackedBlocks * kRows) {
#pragma GCC unroll 4
      for (int block = 0; block < kPackedBlocks; ++block) {
        __builtin_memcpy(to + block * depth * kRows, from + block * kRows, kRows * sizeof(T));
      }
    } else {
      for (int block = 0; block < kPackedBlocks; ++block) {
        CopyOrZero<kRows>(from + block * kRows, columns - block * kRows,
                          to + block * depth * kRows);
      }
    }
  }
}

// One that is read transposed is packed, several blocks of rows at a time.
template <typename T>
void MultiplyTransposed(const ProductCall<T>& call, const PackedRange& range, T* packed) {
  constexpr int kRows = kProductRows, kTogether = kPackedBlocks * kRows;
  const int64_t lines = LinesAtOnce<T>(kTogether * range.depth, range.columns * kPackedBlocks);
  for (int64_t first = 0; first < call.m; first += kTogether) {
    const T* from = call.a.data + range.begin * call.a.stride + first;
    PackLeft(from, call.a.stride, range.depth, call.m - first, packed);
    PartAhead<T> ahead = {from + kTogether, call.a.stride,
                          first + 2 * kTogether <= call.m ? range.depth : 0, kTogether, lines};
    for (int block = 0; block < kPackedBlocks && first + block * kRows < call.m; ++block) {
      const LeftRows<T, true> left = {packed + block * range.depth * kRows, kRows};
      MultiplyRows(call, range, left, first + block * kRows, ahead);
    }
  }
}

// The right matrix, all panels of the range. One that is stored as it is multiplied is read some
// panels at a time: longer runs of its rows, and the panels' lines still find room in the cache.
template <typename T>
void PackRange(const ProductCall<T>& call, const PackedRange& range, T* to) {
  constexpr int64_t kColumns = kBlockColumns<T>, kTogether = 4 * kColumns;
  const int64_t stride = call.b.stride;
  for (int64_t first = 0; first < range.columns; first += kTogether) {
    const int64_t end = AtMost(first + kTogether, range.columns);
    for (int64_t c = first; call.b.transposed && c < end; c += kColumns) {
      PackRight(call.b.data + (range.column + c) * stride + range.begin, stride, true, range.depth,
                range.columns - c, to + c * range.depth);
    }
    for (int64_t p = 0; !call.b.transposed && p < range.depth; ++p) {
      const T* from = call.b.data + (range.begin + p) * stride + range.column;
      for (int64_t c = first; c < end; c += kColumns) {
        CopyOrZero<kColumns>(from + c, range.columns - c, to + c * range.depth + p * kColumns);
      }
    }
  }
}

template <typename T>
void MultiplyMatrices(const ProductCall<T>& call) {
  static_assert(kProductColumns % kBlockColumns<T> == 0);
  static_assert(kPackedBlocks * kProductRows * kProductDepth <= kProductLeftElements);
  T* const right = call.workspace;
  T* const left = right + kProductDepth * kProductColumns;
  for (int64_t column = 0; column < call.n; column += kProductColumns) {
    PackedRange range = {};
    range.column = column;
    range.columns = AtMost(call.n - column, kProductColumns);
    for (range.begin = 0; range.begin < call.k; range.begin += kProductDepth) {
      range.depth = AtMost(call.k - range.begin, kProductDepth);
      PackRange(call, range, right);
      if (call.a.transposed) {
        MultiplyTransposed(call, range, left);
      } else {
        MultiplyStored(call, range, left);
      }
    }
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_PRODUCT_KERNEL_H_
