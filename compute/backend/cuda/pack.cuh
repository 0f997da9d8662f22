// Elements that a thread moves at once, 16 bytes of them where they lie so. For device code.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_PACK_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_PACK_CUH_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "compute/backend/cuda/launch.h"
#include "compute/backend/element.h"

namespace longhaul::compute::cuda {

inline constexpr int kPackBytes = 16;
// Elements of type T in a pack.
template <typename T>
inline constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));

// Packs that so many elements take.
template <typename T>
LONGHAUL_HOST_DEVICE constexpr int64_t PacksOf(int64_t elements) {
  return (elements + kPack<T> - 1) / kPack<T>;
}

// Rounds to the nearest, ties to even, by one instruction of the card.
template <typename T>
__device__ T Narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return value;
  } else {
#ifdef __CUDA_ARCH__
    T narrow;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
    return narrow;
#else
    return T(value);
#endif
  }
}

template <typename T, int kCount>
struct alignas(std::min<int>(kPackBytes, kCount * sizeof(T))) Aligned {
  T values[kCount];
};

template <int kCount, typename T>
__device__ bool IsAligned(const T* values) {
  return reinterpret_cast<uintptr_t>(values) % alignof(Aligned<T, kCount>) == 0;
}

// to[k] = from[at + k], or `outside` where at + k does not lie in [0, end). `at` may be negative.
template <int kCount, typename T>
__device__ void Load(const T* from, int64_t at, int64_t end, Wide<T> (&to)[kCount],
                     Wide<T> outside = 0) {
  const T* const first = from + at;
  if (at >= 0 && at + kCount <= end && IsAligned<kCount>(first)) {
    const Aligned<T, kCount> whole = *reinterpret_cast<const Aligned<T, kCount>*>(first);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) to[k] = whole.values[k];
    return;
  }
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) {
    to[k] = at + k >= 0 && at + k < end ? static_cast<Wide<T>>(first[k]) : outside;
  }
}

// *to = group, in global memory, which lies so. Spelled out, since nvcc takes such a store apart
// where the branch beside it stores single values.
template <int kCount, typename T>
__device__ void StoreWhole(const Aligned<T, kCount>& group, T* to) {
#ifdef __CUDA_ARCH__
  constexpr int kWords = static_cast<int>(sizeof(group) / sizeof(uint32_t));
  uint32_t words[kWords];
  std::memcpy(words, &group, sizeof group);
  if constexpr (kWords == 2) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1])
                 : "memory");
    return;
  } else if constexpr (kWords % 4 == 0) {
    LONGHAUL_UNROLL
    for (int i = 0; i < kWords; i += 4) {
      asm volatile(
          "st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<uint32_t*>(to) + i),
          "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3])
          : "memory");
    }
    return;
  }
#endif
  *reinterpret_cast<Aligned<T, kCount>*>(to) = group;
}

// to[at + k] = from[k], rounded, where at + k lies in [0, end). `to` is in global memory.
template <int kCount, typename T>
__device__ void Store(const Wide<T> (&from)[kCount], T* to, int64_t at, int64_t end) {
  T* const first = to + at;
  if (at >= 0 && at + kCount <= end && IsAligned<kCount>(first)) {
    Aligned<T, kCount> whole;
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) whole.values[k] = Narrow<T>(from[k]);
    StoreWhole(whole, first);
    return;
  }
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (at + k >= 0 && at + k < end) first[k] = Narrow<T>(from[k]);
  }
}

// Calls body(at) on the device for at = 0, kCount, 2 kCount, ... below n, in any order.
template <int kCount, typename Body>
struct PackAt {
  Body body;
  __device__ void operator()(int64_t i) const { body(i * kCount); }
};
template <int kCount, typename Body>
absl::Status ForEachPack(CudaBackend& backend, const char* name, int64_t n, const Body& body) {
  return ForEach(backend, name, (n + kCount - 1) / kCount, PackAt<kCount, Body>{body});
}

// output[i] = function(input[i]), computed in Wide<Out>. output may be input.
template <typename In, typename Out, typename Function>
struct MapAt {
  int64_t n;
  const In* input;
  Out* output;
  Function function;
  static constexpr int kCount = std::min(kPack<In>, kPack<Out>);
  __device__ void operator()(int64_t at) const {
    Wide<In> values[kCount];
    Load(input, at, n, values);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) values[k] = function(values[k]);
    Store(values, output, at, n);
  }
};
template <typename In, typename Out, typename Function>
absl::Status Map(CudaBackend& backend, const char* name, int64_t n, const In* input, Out* output,
                 const Function& function) {
  using At = MapAt<In, Out, Function>;
  return ForEachPack<At::kCount>(backend, name, n, At{n, input, output, function});
}

// output[i] = function(a[i], b[i]), computed in Wide<T>. output may be a or b.
template <typename T, typename Function>
struct Map2At {
  int64_t n;
  const T* a;
  const T* b;
  T* output;
  Function function;
  __device__ void operator()(int64_t at) const {
    Wide<T> left[kPack<T>], right[kPack<T>];
    Load(a, at, n, left);
    Load(b, at, n, right);
    LONGHAUL_UNROLL
    for (int k = 0; k < kPack<T>; ++k) left[k] = function(left[k], right[k]);
    Store(left, output, at, n);
  }
};
template <typename T, typename Function>
absl::Status Map2(CudaBackend& backend, const char* name, int64_t n, const T* a, const T* b,
                  T* output, const Function& function) {
  return ForEachPack<kPack<T>>(backend, name, n, Map2At<T, Function>{n, a, b, output, function});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_PACK_CUH_
