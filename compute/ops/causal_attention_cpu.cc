#include <atomic>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/causal_attention.h"
#include "model/attention_blocks.h"

namespace longhaul::compute {
namespace {

static_assert(kAttentionQueries == model::kAttentionBlockQueries);
static_assert(kAttentionKeys == model::kAttentionBlockKeys);
static_assert(kAttentionColumns == model::kAttentionColumns);
static_assert(kAttentionSpareRows == model::kAttentionSpareRows);
static_assert(kAttentionQueries <= kAttentionColumns);  // spare rows hold either

int64_t RegionElements(const CausalAttentionShape& shape) {
  return model::AttentionRegionElements(shape.context, shape.head_width());
}

// Where the parts of query head `index` (counted over all sequences) begin.
struct HeadOffsets {
  int64_t output, queries, keys, values;
};

HeadOffsets OffsetsOf(const CausalAttentionShape& shape, int64_t index) {
  const int64_t head = index % shape.heads, row = index / shape.heads * shape.context;
  const int64_t kv_head = head / (shape.heads / shape.kv_heads);
  const int64_t width = shape.head_width(), qkv_row = row * shape.qkv_width();
  return {.output = row * shape.width + head * width,
          .queries = qkv_row + head * width,
          .keys = qkv_row + shape.width + kv_head * width,
          .values = qkv_row + shape.width + (shape.kv_heads + kv_head) * width};
}

// Lays out one region.
template <typename T>
AttentionSpace<T> SpaceAt(const CausalAttentionShape& shape, T* region) {
  const int64_t padded_width = model::AttentionPaddedWidth(shape.head_width());
  T* next = region;
  const auto take = [&](int64_t elements) {
    T* const part = next;
    next += elements;
    return part;
  };
  const AttentionSpace<T> space{
      .packed = take(shape.context * padded_width),
      .scores = take(kAttentionKeys * kAttentionQueries),
      .score_gradients = take(kAttentionKeys * kAttentionQueries),
      .queries_transposed = take(kAttentionQueries * padded_width),
      .queries = take(kAttentionQueries * padded_width),
      .output_gradients_transposed = take(kAttentionQueries * padded_width),
      .output_gradients = take(kAttentionQueries * padded_width),
      .spare = take(kAttentionSpareRows * padded_width)};
  LH_CHECK(next == region + RegionElements(shape), "attention's workspace");
  return space;
}

template <typename T>
AttentionHead<T> HeadAt(const CausalAttentionShape& shape, const T* qkv, const HeadOffsets& offsets,
                        const AttentionSpace<T>& space) {
  return {.context = shape.context,
          .width = shape.head_width(),
          .padded_width = model::AttentionPaddedWidth(shape.head_width()),
          .stride = shape.qkv_width(),
          .output_stride = shape.width,
          .scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width()))),
          .queries = qkv + offsets.queries,
          .keys = qkv + offsets.keys,
          .values = qkv + offsets.values,
          .workspace = space};
}

// Regions of the workspace that no task uses. The lowest is taken first, so that a few threads use
// a few regions again and again while they are in the cache.
class FreeRegions {
 public:
  // As many as there are tasks, so that none waits.
  explicit FreeRegions(int64_t regions) : free_(~uint64_t{0} >> (64 - regions)) {}

  int64_t Take() {
    uint64_t free = free_.load(std::memory_order_relaxed);
    while (!free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire)) {
    }
    LH_CHECK(free != 0, "no region is free");
    return std::countr_zero(free);
  }
  void Return(int64_t region) { free_.fetch_or(uint64_t{1} << region, std::memory_order_release); }

 private:
  static_assert(model::kAttentionRegionsMax <= 64);
  std::atomic<uint64_t> free_;
};

// Calls body(index, space) for `heads` heads (of queries or of keys) of each sequence.
template <typename T>
void ForHeads(Backend& backend, const CausalAttentionShape& shape, int64_t heads, T* workspace,
              absl::FunctionRef<void(int64_t, const AttentionSpace<T>&)> body) {
  const int64_t tasks = model::AttentionRegions(shape.batch, heads);
  FreeRegions regions(tasks);
  backend.ParallelFor(tasks, [&](int64_t task) {
    const int64_t region = regions.Take();
    const auto space = SpaceAt(shape, workspace + region * RegionElements(shape));
    for (int64_t index = task; index < shape.batch * heads; index += tasks) body(index, space);
    regions.Return(region);
  });
}

}  // namespace

template <typename T>
absl::Status CpuKernels<T>::CausalAttentionForward(const CausalAttentionShape& shape,
                                                   absl::Span<const T> qkv, absl::Span<T> output,
                                                   absl::Span<Wide<T>> lse,
                                                   absl::Span<Wide<T>> workspace) const {
  const Kernels<T>& kernels = BestKernels<T>();
  ForHeads<T>(backend_, shape, shape.heads, workspace.data(),
              [&](int64_t index, const AttentionSpace<T>& space) {
                const HeadOffsets offsets = OffsetsOf(shape, index);
                kernels.attend(HeadAt(shape, qkv.data(), offsets, space),
                               output.data() + offsets.output, lse.data() + index * shape.context);
              });
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuKernels<T>::CausalAttentionBackward(
    const CausalAttentionShape& shape, absl::Span<const T> qkv, absl::Span<const T> output,
    absl::Span<const Wide<T>> lse, absl::Span<const T> output_gradient, absl::Span<T> qkv_gradient,
    absl::Span<Wide<T>> workspace) const {
  const Kernels<T>& kernels = BestKernels<T>();
  const int64_t group = shape.heads / shape.kv_heads;
  ForHeads<T>(backend_, shape, shape.kv_heads, workspace.data(),
              [&](int64_t kv_index, const AttentionSpace<T>& space) {
                const int64_t first = kv_index * group;
                for (int64_t index = first; index < first + group; ++index) {
                  const HeadOffsets offsets = OffsetsOf(shape, index);
                  kernels.attend_backward(
                      HeadAt(shape, qkv.data(), offsets, space),
                      {.output = output.data() + offsets.output,
                       .output_gradient = output_gradient.data() + offsets.output,
                       .lse = lse.data() + index * shape.context,
                       .queries = qkv_gradient.data() + offsets.queries,
                       .keys = qkv_gradient.data() + offsets.keys,
                       .values = qkv_gradient.data() + offsets.values,
                       .add = index > first});
                }
              });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                             \
  template absl::Status CpuKernels<T>::CausalAttentionForward(                              \
      const CausalAttentionShape&, absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>, \
      absl::Span<Wide<T>>) const;                                                           \
  template absl::Status CpuKernels<T>::CausalAttentionBackward(                             \
      const CausalAttentionShape&, absl::Span<const T>, absl::Span<const T>,                \
      absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
