// Sixteen lanes of T over registers of any width: the unit in which kernels work, so that the order
// of sums does not depend on the instruction set. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_LANES_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_LANES_H_

#include <cstdint>
#include <type_traits>

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

inline constexpr int kLanes = 16;

template <typename T>
struct RegisterOf;
template <>
struct RegisterOf<float> {
  typedef float Type __attribute__((vector_size(LONGHAUL_REGISTER_BYTES)));
  typedef float Unaligned
      __attribute__((vector_size(LONGHAUL_REGISTER_BYTES), aligned(4), may_alias));
  typedef uint32_t Bits __attribute__((vector_size(LONGHAUL_REGISTER_BYTES)));
};
template <>
struct RegisterOf<double> {
  typedef double Type __attribute__((vector_size(LONGHAUL_REGISTER_BYTES)));
  typedef double Unaligned
      __attribute__((vector_size(LONGHAUL_REGISTER_BYTES), aligned(8), may_alias));
  typedef uint64_t Bits __attribute__((vector_size(LONGHAUL_REGISTER_BYTES)));
};
template <typename T>
using Register = typename RegisterOf<T>::Type;

template <typename T>
inline Register<T> Splat(T value) {
  return value - Register<T>{};
}

template <typename T>
struct Lanes {
  static constexpr int kPartLanes = LONGHAUL_REGISTER_BYTES / static_cast<int>(sizeof(T));
  static constexpr int kParts = kLanes / kPartLanes;
  Register<T> part[kParts];
};

// Applies a function of registers to each part.
template <typename T, typename F, typename... Rest>
inline __attribute__((always_inline)) Lanes<T> Map(const F& f, const Lanes<T>& first,
                                                   const Rest&... rest) {
  Lanes<T> result;
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<T>::kParts; ++p) result.part[p] = f(first.part[p], rest.part[p]...);
  return result;
}

template <typename T>
inline Lanes<T> Fill(T value) {
  Lanes<T> result;
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<T>::kParts; ++p) result.part[p] = Splat<T>(value);
  return result;
}

template <typename T>
inline Lanes<T> Load(const T* from) {
  Lanes<T> result;
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<T>::kParts; ++p) {
    result.part[p] = *reinterpret_cast<const typename RegisterOf<T>::Unaligned*>(
        from + p * Lanes<T>::kPartLanes);
  }
  return result;
}

template <typename T>
inline void Store(T* to, const Lanes<T>& lanes) {
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<T>::kParts; ++p) {
    *reinterpret_cast<typename RegisterOf<T>::Unaligned*>(to + p * Lanes<T>::kPartLanes) =
        lanes.part[p];
  }
}

// The ends of rows, once for all kernels rather than inlined in each: they would be most of the
// code.
template <typename T>
__attribute__((noinline)) void CopyPadded(const T* from, int64_t n, T rest, T* lanes) {
  for (int64_t i = 0; i < n; ++i) lanes[i] = from[i];
  for (int64_t i = n; i < kLanes; ++i) lanes[i] = rest;
}
template <typename T>
__attribute__((noinline)) void CopyFirst(const T* lanes, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = lanes[i];
}

// The first n < 16 lanes from memory, the others `rest`.
template <typename T>
inline Lanes<T> LoadSome(const T* from, int64_t n, T rest) {
  T lanes[kLanes];
  CopyPadded(from, n, rest, lanes);
  return Load(lanes);
}

template <typename T>
inline void StoreSome(T* to, const Lanes<T>& lanes, int64_t n) {
  T values[kLanes];
  Store(values, lanes);
  CopyFirst(values, n, to);
}

template <typename T>
inline Lanes<T> operator+(const Lanes<T>& a, const Lanes<T>& b) {
  return Map<T>([](Register<T> x, Register<T> y) { return x + y; }, a, b);
}
template <typename T>
inline Lanes<T> operator-(const Lanes<T>& a, const Lanes<T>& b) {
  return Map<T>([](Register<T> x, Register<T> y) { return x - y; }, a, b);
}
template <typename T>
inline Lanes<T> operator*(const Lanes<T>& a, const Lanes<T>& b) {
  return Map<T>([](Register<T> x, Register<T> y) { return x * y; }, a, b);
}
template <typename T>
inline Lanes<T> operator/(const Lanes<T>& a, const Lanes<T>& b) {
  return Map<T>([](Register<T> x, Register<T> y) { return x / y; }, a, b);
}

// The numbers of a register's lanes, as constants.
template <int... kIndex>
struct Indices {};
template <int kCount, int... kIndex>
struct CountTo : CountTo<kCount - 1, kCount - 1, kIndex...> {};
template <int... kIndex>
struct CountTo<0, kIndex...> {
  using Type = Indices<kIndex...>;
};
template <typename T>
using LaneIndices = typename CountTo<Lanes<T>::kPartLanes>::Type;

// Lane i is lane i + distance, cyclically.
template <typename T, int kDistance, int... kIndex>
inline __attribute__((always_inline)) Register<T> MovedDown(Register<T> lanes, Indices<kIndex...>) {
  return __builtin_shufflevector(lanes, lanes, (kIndex + kDistance) % Lanes<T>::kPartLanes...);
}

// Combines lane i of the first `2 * kHalf` lanes with lane i + kHalf, then halves again.
template <typename T, int kHalf, typename F>
inline __attribute__((always_inline)) T FoldRegister(Register<T> lanes, const F& combine) {
  if constexpr (kHalf == 0) {
    return lanes[0];
  } else {
    const Register<T> moved = MovedDown<T, kHalf>(lanes, LaneIndices<T>{});
    return FoldRegister<T, kHalf / 2>(combine(lanes, moved), combine);
  }
}

// Combines the lanes by a fixed tree: lane i takes lane i + 8, then i + 4, i + 2, i + 1. `combine`
// is a function of registers.
template <typename T, typename F>
inline __attribute__((always_inline)) T FoldLanes(Lanes<T> lanes, const F& combine) {
#pragma GCC unroll 4
  for (int parts = Lanes<T>::kParts / 2; parts > 0; parts /= 2) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) {
      lanes.part[p] = combine(lanes.part[p], lanes.part[p + parts]);
    }
  }
  return FoldRegister<T, Lanes<T>::kPartLanes / 2>(lanes.part[0], combine);
}

template <typename T>
inline T SumOfLanes(const Lanes<T>& lanes) {
  return FoldLanes(lanes, [](Register<T> a, Register<T> b) { return a + b; });
}

template <typename T, int... kIndex>
inline typename RegisterOf<T>::Bits LaneNumbers(Indices<kIndex...>) {
  return typename RegisterOf<T>::Bits{kIndex...};
}

// The lanes from n on, 0 <= n; the first n are `rest`.
template <typename T>
inline __attribute__((always_inline)) Lanes<T> LanesFrom(const Lanes<T>& lanes, int64_t n, T rest) {
  using Bits = typename RegisterOf<T>::Bits;
  using Element = std::remove_reference_t<decltype(Bits{}[0])>;
  const Element bound = static_cast<Element>(n < kLanes ? n : kLanes);
  Lanes<T> result;
#pragma GCC unroll 8
  for (int p = 0; p < Lanes<T>::kParts; ++p) {
    const Element first = static_cast<Element>(p * Lanes<T>::kPartLanes);
    const Bits number = LaneNumbers<T>(LaneIndices<T>{}) + first;
    result.part[p] = number < bound - Bits{} ? Splat<T>(rest) : lanes.part[p];
  }
  return result;
}

// Calls body(offset, count) for each 16 elements of n; count is 16 but in the last call. `body` is
// a generic callable so that the full case is compiled with a constant count.
struct Full {
  static constexpr int64_t count = kLanes;
};
struct Partial {
  int64_t count;
};
template <typename T>
inline Lanes<T> Load(const T* from, Full, T) {
  return Load(from);
}
template <typename T>
inline Lanes<T> Load(const T* from, Partial some, T rest) {
  return LoadSome(from, some.count, rest);
}
template <typename T>
inline void Store(T* to, const Lanes<T>& lanes, Full) {
  Store(to, lanes);
}
template <typename T>
inline void Store(T* to, const Lanes<T>& lanes, Partial some) {
  StoreSome(to, lanes, some.count);
}
template <typename Body>
inline __attribute__((always_inline)) void ForLanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Full{});
  if (i < n) body(i, Partial{n - i});
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_LANES_H_
