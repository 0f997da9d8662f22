// The product of a few rows and two registers of columns, whose sums stay in registers: what every
// matrix product of ours is made of (Goto and van de Geijn 2008, section 4). An element is the sum
// over the depth in order, each term added by one MultiplyAdd, so that its bits depend on neither
// the width of registers nor the number of rows taken together. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_BLOCK_PRODUCT_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_BLOCK_PRODUCT_H_

#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/lanes.h"
#include "compute/backend/cpu/simd/multiply_add.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

template <typename T>
inline constexpr int kVectorLanes = LONGHAUL_REGISTER_BYTES / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int kBlockColumns = 2 * kVectorLanes<T>;

template <typename T>
inline __attribute__((always_inline)) Register<T> LoadRegister(const T* from) {
  return *reinterpret_cast<const typename RegisterOf<T>::Unaligned*>(from);
}
template <typename T>
inline __attribute__((always_inline)) void StoreRegister(T* to, Register<T> values) {
  *reinterpret_cast<typename RegisterOf<T>::Unaligned*>(to) = values;
}

// Rows of the left matrix. Element (r, p) is data[r * step + p], or, side by side,
// data[p * step + r].
template <typename T, bool kSideBySide>
struct LeftRows {
  const T* data;
  int64_t step;
};

inline int64_t AtMost(int64_t value, int64_t bound) { return value < bound ? value : bound; }

// Where a block goes: rows x columns of it, from `result` on.
template <typename T>
struct BlockTarget {
  T* result;
  int64_t stride;
  int64_t rows, columns;
  bool add;       // to what is there
  const T* bias;  // of each column; not where `add`, and null for none
};

template <typename T, int kRows>
struct BlockSums {
  Register<T> part[kRows][2];
};

// The sums over left (r, p) * right[p * kBlockColumns + c].
template <typename T, int kRows, bool kSideBySide>
inline __attribute__((always_inline)) BlockSums<T, kRows> SumProducts(
    const LeftRows<T, kSideBySide>& left, const T* right, int64_t depth) {
  constexpr int kVector = kVectorLanes<T>;
  BlockSums<T, kRows> sums = {};
  const T* row = left.data;
  for (int64_t p = 0; p < depth; ++p) {
    const Register<T> first = LoadRegister(right + p * 2 * kVector);
    const Register<T> second = LoadRegister(right + p * 2 * kVector + kVector);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Register<T> factor = Splat<T>(kSideBySide ? row[r] : row[r * left.step + p]);
      sums.part[r][0] = MultiplyAdd(factor, first, sums.part[r][0]);
      sums.part[r][1] = MultiplyAdd(factor, second, sums.part[r][1]);
    }
    if (kSideBySide) row += left.step;
  }
  return sums;
}

// Calls store(r, c, sums) for each register of the block.
template <typename T, int kRows, typename Store>
inline __attribute__((always_inline)) void ForParts(const BlockSums<T, kRows>& sums,
                                                    const Store& store) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    store(r, 0, sums.part[r][0]);
    store(r, kVectorLanes<T>, sums.part[r][1]);
  }
}

// A block at the right or lower edge, from `values` [rows, kBlockColumns].
template <typename T>
__attribute__((noinline)) void StorePart(const T* values, const BlockTarget<T>& target) {
  for (int64_t r = 0; r < target.rows; ++r, values += kBlockColumns<T>) {
    T* to = target.result + r * target.stride;
    for (int64_t c = 0; c < target.columns; ++c) {
      to[c] = target.add               ? to[c] + values[c]
              : target.bias == nullptr ? values[c]
                                       : target.bias[c] + values[c];
    }
  }
}

// Takes kRows rows and kBlockColumns columns, of which the target may want fewer.
template <typename T, int kRows, bool kSideBySide>
inline __attribute__((always_inline)) void MultiplyBlock(const LeftRows<T, kSideBySide>& left,
                                                         const T* right, int64_t depth,
                                                         const BlockTarget<T>& target) {
  T* const result = target.result;
  const int64_t stride = target.stride;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(result + r * stride, 1);
    if (sizeof(Register<T>) == 64) __builtin_prefetch(result + r * stride + kVectorLanes<T>, 1);
  }
  const BlockSums<T, kRows> sums = SumProducts<T, kRows, kSideBySide>(left, right, depth);
  if (target.rows < kRows || target.columns < kBlockColumns<T>) {
    T values[kRows * kBlockColumns<T>];
    ForParts(sums, [&](int r, int c, Register<T> part) {
      StoreRegister(values + r * kBlockColumns<T> + c, part);
    });
    StorePart(values, target);
  } else if (target.add) {
    ForParts(sums, [&](int r, int c, Register<T> part) {
      T* to = result + r * stride + c;
      StoreRegister(to, LoadRegister(to) + part);
    });
  } else if (target.bias == nullptr) {
    ForParts(sums,
             [&](int r, int c, Register<T> part) { StoreRegister(result + r * stride + c, part); });
  } else {
    const Register<T> bias[2] = {LoadRegister(target.bias),
                                 LoadRegister(target.bias + kVectorLanes<T>)};
    ForParts(sums, [&](int r, int c, Register<T> part) {
      StoreRegister(result + r * stride + c, bias[c > 0] + part);
    });
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_BLOCK_PRODUCT_H_
