// How the codecs' kernels move values: several at once where they lie so. Bits are kept, so these
// are not the rounding loads and stores of the operators. For device code.
#ifndef LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_
#define LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_

#include <cstdint>

#include "compute/backend/cuda/pack.cuh"

namespace longhaul::compute::cuda {

// from[k] for k below `count`, which may be more than kCount or less than 0; T() behind.
template <int kCount, typename T>
__device__ Aligned<T, kCount> LoadGroup(const T* from, int64_t count) {
  if (kCount <= count && IsAligned<kCount>(from)) {
    return *reinterpret_cast<const Aligned<T, kCount>*>(from);
  }
  Aligned<T, kCount> group;
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) group.values[k] = k < count ? from[k] : T();
  return group;
}

// to[k] = group[k] for k below `count`, which may be more than kCount or less than 0.
template <int kCount, typename T>
__device__ void StoreGroup(const Aligned<T, kCount>& group, T* to, int64_t count) {
  if (kCount <= count && IsAligned<kCount>(to)) {
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
  Function function;

  __device__ void operator()(int64_t group) const {
    const int64_t begin = group * kCount;
    const Aligned<From, kCount> in = LoadGroup<kCount>(from + begin, n - begin);
    Aligned<To, kCount> out;
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) out.values[k] = function(in.values[k]);
    StoreGroup(out, to + begin, n - begin);
  }
};

template <typename From, typename To, typename Function>
absl::Status MapInGroups(CudaBackend& backend, const char* name, const From* from, To* to,
                         int64_t n, const Function& function) {
  using Map = MapGroup<From, To, Function>;
  return ForEach(backend, name, (n + Map::kCount - 1) / Map::kCount, Map{from, to, n, function});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_CODEC_GROUPS_CUH_
