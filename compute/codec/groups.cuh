// How the codecs' kernels move values: several at once where they lie so. Bits are kept, so these
// are not the rounding loads and stores of the operators. For device code.
#ifndef LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_
#define LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "compute/backend/cuda/launch.h"

namespace longhaul::compute::cuda {

template <typename T, int kCount>
struct alignas(std::min<int>(16, kCount * sizeof(T))) Group {
  T values[kCount];
};

// *to = group, whose alignment `to` has, by instructions that are spelled out: nvcc takes a store
// of a group apart where it merges it with stores of single values.
template <typename T, int kCount>
__device__ void StoreWhole(const Group<T, kCount>& group, T* to) {
#ifdef __CUDA_ARCH__
  constexpr int kWords = sizeof(group) / sizeof(uint32_t);
  uint32_t words[kWords];
  std::memcpy(words, &group, sizeof group);
  uint32_t* const out = reinterpret_cast<uint32_t*>(to);
  if constexpr (kWords % 4 == 0) {
    LONGHAUL_UNROLL
    for (int i = 0; i < kWords; i += 4) {
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(out + i), "r"(words[i]),
                   "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3])
                   : "memory");
    }
  } else if constexpr (kWords == 2) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(out), "r"(words[0]), "r"(words[1])
                 : "memory");
  } else {
    static_assert(kWords == 1);
    asm volatile("st.global.b32 [%0], %1;" ::"l"(out), "r"(words[0]) : "memory");
  }
#else
  std::memcpy(to, &group, sizeof group);
#endif
}

// Whether the values can be moved as groups, wherever these begin.
template <typename T, int kCount>
bool LieInGroups(const T* values) {
  return reinterpret_cast<uintptr_t>(values) % alignof(Group<T, kCount>) == 0;
}

// from[k] for k below `count`, which may be more than kCount or less than 0; T() behind.
template <int kCount, typename T>
__device__ Group<T, kCount> LoadGroup(const T* from, int64_t count, bool in_groups) {
  if (in_groups && kCount <= count) return *reinterpret_cast<const Group<T, kCount>*>(from);
  Group<T, kCount> group;
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) group.values[k] = k < count ? from[k] : T();
  return group;
}

// to[k] = group[k] for k below `count`, which may be more than kCount or less than 0.
template <int kCount, typename T>
__device__ void StoreGroup(const Group<T, kCount>& group, T* to, int64_t count, bool in_groups) {
  if (in_groups && kCount <= count) {
    StoreWhole(group, to);
    return;
  }
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < count) to[k] = group.values[k];
  }
}

// to[i] = function(from[i]) for i in [8 group, 8 group + 8) below n.
template <typename From, typename To, typename Function>
struct MapGroup {
  static constexpr int kCount = 8;
  const From* from;
  To* to;
  int64_t n;
  bool in_groups;
  Function function;

  __device__ void operator()(int64_t group) const {
    const int64_t begin = group * kCount, count = n - begin;
    const Group<From, kCount> in = LoadGroup<kCount>(from + begin, count, in_groups);
    Group<To, kCount> out;
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) out.values[k] = function(in.values[k]);
    StoreGroup(out, to + begin, count, in_groups);
  }
};

template <typename From, typename To, typename Function>
absl::Status MapInGroups(CudaBackend& backend, const char* name, const From* from, To* to,
                         int64_t n, const Function& function) {
  using Map = MapGroup<From, To, Function>;
  const bool in_groups = LieInGroups<From, Map::kCount>(from) && LieInGroups<To, Map::kCount>(to);
  return ForEach(backend, name, (n + Map::kCount - 1) / Map::kCount,
                 Map{from, to, n, in_groups, function});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_
