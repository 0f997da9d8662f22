// A row of a matrix, spread over the threads of a block that goes over it several times. For device
// code.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_HELD_ROW_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_HELD_ROW_CUH_

#include "compute/backend/cuda/pack.cuh"

namespace longhaul::compute::cuda {

// How a row of elements of type T is spread: a thread has every kThreads-th pack of it, and keeps
// the first kHeld of them in registers.
template <typename T, int kThreadsOfRow, int kHeldPacks>
struct RowSpread {
  static constexpr int kThreads = kThreadsOfRow;
  static constexpr int kHeld = kHeldPacks;
  static constexpr int kCount = kPack<T>;

  // Where this thread's pack number `pack` begins.
  __device__ static int64_t At(int64_t pack) { return (pack * kThreads + threadIdx.x) * kCount; }
};

// What this thread knows of its packs, a Values of each. What lies beyond those that are held, of
// wider rows, is made again each time.
template <typename Spread, typename Values>
class HeldRow {
 public:
  // make(at, values) for every pack.
  template <typename Make>
  __device__ void Fill(int64_t width, const Make& make) {
    LONGHAUL_UNROLL
    for (int pack = 0; pack < Spread::kHeld; ++pack) {
      if (Spread::At(pack) < width) make(Spread::At(pack), held_[pack]);
    }
    for (int64_t pack = Spread::kHeld; Spread::At(pack) < width; ++pack) {
      Values values;
      make(Spread::At(pack), values);
    }
  }

  // body(at, values, pack) for every pack; `make` makes the values of those that are not held,
  // whose number is said to be kHeld.
  template <typename Make, typename Body>
  __device__ void ForEach(int64_t width, const Make& make, const Body& body) {
    LONGHAUL_UNROLL
    for (int pack = 0; pack < Spread::kHeld; ++pack) {
      if (Spread::At(pack) < width) body(Spread::At(pack), held_[pack], pack);
    }
    for (int64_t pack = Spread::kHeld; Spread::At(pack) < width; ++pack) {
      Values values;
      make(Spread::At(pack), values);
      body(Spread::At(pack), values, Spread::kHeld);
    }
  }

 private:
  Values held_[Spread::kHeld] = {};
};

// body(RowSpread<...>()) with as many threads and registers as rows of `width` elements are worth.
template <typename T, typename Body>
absl::Status WithSpread(int64_t width, const Body& body) {
  const int64_t packs = PacksOf<T>(width);
  if (packs <= 128) return body(RowSpread<T, 128, 1>());
  if (packs <= 256) return body(RowSpread<T, 256, 1>());
  return body(RowSpread<T, 256, 4>());
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_HELD_ROW_CUH_
