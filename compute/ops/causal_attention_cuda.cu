// Attention in tiles of keys with a running maximum and sum (Dao et al. 2022, algorithm 1), and its
// gradient from the kept log-sum-exp (algorithm 4) in two passes, one over queries and one over
// keys, so that no two blocks add to one place. Heads of any width, a chunk of it at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/fused_attention.h"
#include "compute/backend/cuda/launch.h"
#include "compute/backend/cuda/pack.cuh"
#include "compute/ops/attention_tiles.cuh"
#include "compute/ops/causal_attention.h"

namespace longhaul::compute {
namespace {

using namespace attention_tiles;  // NOLINT: this file's own

template <typename T>
struct Attention {
  CausalAttentionShape shape;
  const T* qkv;
  Wide<T> scale;  // of products of queries and keys

  // Of sequence `sequence`.
  __device__ HeadRows<T> Queries(int64_t sequence, int64_t head) const {
    return At(qkv, sequence, head * shape.head_width());
  }
  __device__ HeadRows<T> Keys(int64_t sequence, int64_t kv_head) const {
    return At(qkv, sequence, shape.width + kv_head * shape.head_width());
  }
  __device__ HeadRows<T> Values(int64_t sequence, int64_t kv_head) const {
    return At(qkv, sequence, shape.width + (shape.kv_heads + kv_head) * shape.head_width());
  }
  __device__ HeadRows<T> OutputRows(const T* output, int64_t sequence, int64_t head) const {
    return {output + sequence * shape.context * shape.width + head * shape.head_width(),
            shape.width};
  }

 private:
  __device__ HeadRows<T> At(const T* matrix, int64_t sequence, int64_t column) const {
    return {matrix + sequence * shape.context * shape.qkv_width() + column, shape.qkv_width()};
  }
};

// The queries of this block: kRows from position `first`.
struct BlockQueries {
  int64_t sequence, head, kv_head, first;
};
__device__ BlockQueries QueriesOfBlock(const CausalAttentionShape& shape) {
  const int64_t head = blockIdx.y % shape.heads;
  return {blockIdx.y / shape.heads, head, head / (shape.heads / shape.kv_heads),
          int64_t{blockIdx.x} * kRows};
}

// A block for kRows queries of each head.
template <typename T, int kChunks>
__global__ void __launch_bounds__(kThreads, 1)
    ForwardKernel(Attention<T> attention, T* output, Wide<T>* lse) {
  using W = Wide<T>;
  __shared__ W a[kRows][kPadded];
  __shared__ W b[kLanes][kPadded];
  __shared__ W weights[kRows][kLanes];
  const CausalAttentionShape& shape = attention.shape;
  const int64_t context = shape.context, width = shape.head_width();
  const auto [sequence, head, kv_head, first] = QueriesOfBlock(shape);
  const int warp = Warp(), lane = Lane();
  W result[kRowsOfWarp][kChunks * kColumnsOfLane] = {};
  W largest[kRowsOfWarp], sums[kRowsOfWarp] = {};
  LONGHAUL_UNROLL
  for (int r = 0; r < kRowsOfWarp; ++r) largest[r] = -INFINITY;
  for (int64_t key = 0; key < context && key < first + kRows; key += kLanes) {
    W scores[kRowsOfWarp];
    Products<T>{a, b}(attention.Queries(sequence, head), first, attention.Keys(sequence, kv_head),
                      key, context, width, scores);
    LONGHAUL_UNROLL
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int64_t query = first + warp * kRowsOfWarp + r;
      const bool seen = key + lane <= query && query < context;
      const W score = seen ? scores[r] * attention.scale : -INFINITY;
      const W now = cuda::Max{}(largest[r], cuda::WarpReduce(score, cuda::Max{}));
      const W fade = now == largest[r] ? W(1) : exp(largest[r] - now);
      const W weight = seen ? exp(score - now) : W(0);
      sums[r] = sums[r] * fade + cuda::WarpReduce(weight, cuda::Sum{});
      LONGHAUL_UNROLL
      for (int i = 0; i < kChunks * kColumnsOfLane; ++i) result[r][i] *= fade;
      largest[r] = now;
      weights[warp * kRowsOfWarp + r][lane] = weight;
    }
    AddWeighted<T, kChunks>(attention.Values(sequence, kv_head), key, context, width, weights, b,
                            result);
  }
  const HeadRows<T> to = attention.OutputRows(output, sequence, head);
  ForResults<kChunks>(first, context, width,
                      [&](int r, int64_t position, int64_t column, int place) {
                        const_cast<T*>(to.values)[position * to.stride + column] =
                            cuda::Narrow<T>(result[r][place] / sums[r]);
                      });
  LONGHAUL_UNROLL
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int64_t query = first + warp * kRowsOfWarp + r;
    if (lane == 0 && query < context) {
      lse[blockIdx.y * context + query] = largest[r] + log(sums[r]);
    }
  }
}

// What backward needs besides.
template <typename T>
struct Gradients {
  const Wide<T>* lse;
  const T* output_gradient;
  const Wide<T>* deltas;  // [batch*heads*context], see DeltaAt
  T* qkv_gradient;
};

// The sum of a row's output times its gradient.
template <typename T>
struct DeltaAt {
  CausalAttentionShape shape;
  const T* output;
  const T* output_gradient;
  Wide<T>* deltas;
  __device__ void operator()(int64_t i) const {
    const int64_t position = i % shape.context, head = i / shape.context % shape.heads;
    const int64_t sequence = i / (shape.context * shape.heads), width = shape.head_width();
    const int64_t at = (sequence * shape.context + position) * shape.width + head * width;
    Wide<T> sum = 0;
    for (int64_t c = 0; c < width; ++c) {
      sum += Wide<T>(output[at + c]) * Wide<T>(output_gradient[at + c]);
    }
    deltas[i] = sum;
  }
};

// The gradients of kRows queries of each head.
template <typename T, int kChunks>
__global__ void __launch_bounds__(kThreads, 1)
    QueryGradientKernel(Attention<T> attention, Gradients<T> gradients) {
  using W = Wide<T>;
  __shared__ W a[kRows][kPadded];
  __shared__ W b[kLanes][kPadded];
  __shared__ W weights[kRows][kLanes];
  const CausalAttentionShape& shape = attention.shape;
  const int64_t context = shape.context, width = shape.head_width();
  const auto [sequence, head, kv_head, first] = QueriesOfBlock(shape);
  const int warp = Warp(), lane = Lane();
  const HeadRows<T> queries = attention.Queries(sequence, head);
  const HeadRows<T> keys = attention.Keys(sequence, kv_head);
  const HeadRows<T> output_gradients =
      attention.OutputRows(gradients.output_gradient, sequence, head);
  W result[kRowsOfWarp][kChunks * kColumnsOfLane] = {};
  for (int64_t key = 0; key < context && key < first + kRows; key += kLanes) {
    W scores[kRowsOfWarp], weight_gradients[kRowsOfWarp];
    Products<T>{a, b}(queries, first, keys, key, context, width, scores);
    Products<T>{a, b}(output_gradients, first, attention.Values(sequence, kv_head), key, context,
                      width, weight_gradients);
    LONGHAUL_UNROLL
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int64_t query = first + warp * kRowsOfWarp + r;
      W gradient = 0;
      if (key + lane <= query && query < context) {
        const int64_t row = blockIdx.y * context + query;
        const W weight = exp(scores[r] * attention.scale - gradients.lse[row]);
        gradient = weight * (weight_gradients[r] - gradients.deltas[row]) * attention.scale;
      }
      weights[warp * kRowsOfWarp + r][lane] = gradient;
    }
    AddWeighted<T, kChunks>(keys, key, context, width, weights, b, result);
  }
  const int64_t to = queries.values - attention.qkv;
  ForResults<kChunks>(first, context, width,
                      [&](int r, int64_t position, int64_t column, int place) {
                        gradients.qkv_gradient[to + position * queries.stride + column] =
                            cuda::Narrow<T>(result[r][place]);
                      });
}

// The gradients of kRows keys and values of each head of keys: over its query heads in order.
template <typename T, int kChunks>
__global__ void __launch_bounds__(kThreads, 1)
    KeyGradientKernel(Attention<T> attention, Gradients<T> gradients) {
  using W = Wide<T>;
  __shared__ W a[kRows][kPadded];
  __shared__ W b[kLanes][kPadded];
  __shared__ W weights[kRows][kLanes];
  __shared__ W weight_gradients[kRows][kLanes];
  const CausalAttentionShape& shape = attention.shape;
  const int64_t context = shape.context, width = shape.head_width();
  const int64_t sequence = blockIdx.y / shape.kv_heads, kv_head = blockIdx.y % shape.kv_heads;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t first = int64_t{blockIdx.x} * kRows;
  const int warp = Warp(), lane = Lane();
  const HeadRows<T> keys = attention.Keys(sequence, kv_head);
  const HeadRows<T> values = attention.Values(sequence, kv_head);
  W of_keys[kRowsOfWarp][kChunks * kColumnsOfLane] = {};
  W of_values[kRowsOfWarp][kChunks * kColumnsOfLane] = {};
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const HeadRows<T> queries = attention.Queries(sequence, head);
    const HeadRows<T> output_gradients =
        attention.OutputRows(gradients.output_gradient, sequence, head);
    const int64_t rows = (sequence * shape.heads + head) * context;
    for (int64_t query = first / kLanes * kLanes; query < context; query += kLanes) {
      W scores[kRowsOfWarp], products[kRowsOfWarp];
      Products<T>{a, b}(keys, first, queries, query, context, width, scores);
      Products<T>{a, b}(values, first, output_gradients, query, context, width, products);
      LONGHAUL_UNROLL
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int64_t key = first + warp * kRowsOfWarp + r, row = rows + query + lane;
        W weight = 0, gradient = 0;
        if (key <= query + lane && query + lane < context) {
          weight = exp(scores[r] * attention.scale - gradients.lse[row]);
          gradient = weight * (products[r] - gradients.deltas[row]) * attention.scale;
        }
        weights[warp * kRowsOfWarp + r][lane] = weight;
        weight_gradients[warp * kRowsOfWarp + r][lane] = gradient;
      }
      AddWeighted<T, kChunks>(output_gradients, query, context, width, weights, b, of_values);
      AddWeighted<T, kChunks>(queries, query, context, width, weight_gradients, b, of_keys);
    }
  }
  const int64_t keys_at = keys.values - attention.qkv, values_at = values.values - attention.qkv;
  ForResults<kChunks>(
      first, context, width, [&](int r, int64_t position, int64_t column, int place) {
        const int64_t at = position * keys.stride + column;
        gradients.qkv_gradient[keys_at + at] = cuda::Narrow<T>(of_keys[r][place]);
        gradients.qkv_gradient[values_at + at] = cuda::Narrow<T>(of_values[r][place]);
      });
}

template <typename T>
Attention<T> AttentionOf(const CausalAttentionShape& shape, const T* qkv) {
  return {shape, qkv, static_cast<Wide<T>>(1 / std::sqrt(static_cast<double>(shape.head_width())))};
}

cuda::LaunchShape LaunchFor(const CausalAttentionShape& shape, int64_t heads) {
  return {dim3(static_cast<unsigned>((shape.context + kRows - 1) / kRows),
               static_cast<unsigned>(shape.batch * heads)),
          kThreads};
}

// Calls launch with the number of chunks that a head's width takes, as a type.
template <typename Launch>
absl::Status WithChunks(const CausalAttentionShape& shape, const Launch& launch) {
  const int64_t width = shape.head_width();
  if (shape.batch * shape.heads > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("causal attention: ", shape.batch, " sequences of ", shape.heads,
                     " heads are more than a launch takes; make the micro-batch smaller"));
  }
  if (width <= kChunk) return launch(std::integral_constant<int, 1>{});
  if (width <= 2 * kChunk) return launch(std::integral_constant<int, 2>{});
  if (width <= 4 * kChunk) return launch(std::integral_constant<int, 4>{});
  return absl::InvalidArgumentError(absl::StrCat("causal attention: a head of ", width,
                                                 " is wider than the ", 4 * kChunk,
                                                 " that the CUDA kernels take"));
}

cuda::AttentionExtents ExtentsOf(const CausalAttentionShape& shape) {
  return {shape.batch, shape.context, shape.heads, shape.kv_heads, shape.head_width()};
}

template <typename T>
cuda::AttentionPlan* LibraryFor(CudaBackend& backend, const CausalAttentionShape& shape) {
  return backend.attention().For(kElementOf<T>, ExtentsOf(shape));
}

// What a library queues for one call, at most.
constexpr int kLibraryOperations = 8;

}  // namespace

template <typename T>
absl::StatusOr<std::string> CudaKernels<T>::CausalAttentionKernel(
    const CausalAttentionShape& shape) const {
  backend_.MakeCurrent();
  if (const cuda::AttentionPlan* const plan = LibraryFor<T>(backend_, shape); plan != nullptr) {
    LH_RETURN_IF_ERROR(
        backend_.Scratch(std::max(plan->forward_bytes(), plan->backward_bytes())).status());
  }
  return backend_.attention().NameFor(kElementOf<T>, ExtentsOf(shape));
}

template <typename T>
absl::Status CudaKernels<T>::CausalAttentionForward(const CausalAttentionShape& shape,
                                                    absl::Span<const T> qkv, absl::Span<T> output,
                                                    absl::Span<Wide<T>> lse,
                                                    absl::Span<Wide<T>>) const {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const cuda::AttentionMemory memory{
        .qkv = qkv.data(), .output = output.data(), .lse = lse.data()};
    cuda::AttentionPlan* const plan = LibraryFor<T>(backend_, shape);
    if (plan != nullptr && cuda::IsForLibrary(memory)) {
      LH_ASSIGN_OR_RETURN(void* const workspace, backend_.Scratch(plan->forward_bytes()));
      LH_RETURN_IF_ERROR(backend_.Admit(kLibraryOperations));
      return plan->Forward(memory, workspace);
    }
  }
  return WithChunks(shape, [&](auto chunks) {
    return cuda::Launch(backend_, "causal attention", LaunchFor(shape, shape.heads),
                        ForwardKernel<T, decltype(chunks)::value>, AttentionOf(shape, qkv.data()),
                        output.data(), lse.data());
  });
}

template <typename T>
absl::Status CudaKernels<T>::CausalAttentionBackward(
    const CausalAttentionShape& shape, absl::Span<const T> qkv, absl::Span<const T> output,
    absl::Span<const Wide<T>> lse, absl::Span<const T> output_gradient, absl::Span<T> qkv_gradient,
    absl::Span<Wide<T>>) const {
  constexpr const char* kOp = "causal attention backward";
  if constexpr (std::is_same_v<T, BFloat16>) {
    // The library's interface does not say what it only reads.
    const cuda::AttentionMemory memory{.qkv = qkv.data(),
                                       .output = const_cast<T*>(output.data()),
                                       .lse = const_cast<float*>(lse.data()),
                                       .output_gradient = output_gradient.data(),
                                       .qkv_gradient = qkv_gradient.data()};
    cuda::AttentionPlan* const plan = LibraryFor<T>(backend_, shape);
    if (plan != nullptr && cuda::IsForLibrary(memory)) {
      LH_ASSIGN_OR_RETURN(void* const workspace, backend_.Scratch(plan->backward_bytes()));
      LH_RETURN_IF_ERROR(backend_.Admit(kLibraryOperations));
      return plan->Backward(memory, workspace);
    }
  }
  const int64_t rows = shape.batch * shape.heads * shape.context;
  LH_ASSIGN_OR_RETURN(Wide<T>* const deltas, backend_.template ScratchOf<Wide<T>>(rows));
  LH_RETURN_IF_ERROR(cuda::ForEach(
      backend_, kOp, rows, DeltaAt<T>{shape, output.data(), output_gradient.data(), deltas}));
  const Attention<T> attention = AttentionOf(shape, qkv.data());
  const Gradients<T> gradients{lse.data(), output_gradient.data(), deltas, qkv_gradient.data()};
  return WithChunks(shape, [&](auto chunks) {
    constexpr int kChunks = decltype(chunks)::value;
    LH_RETURN_IF_ERROR(cuda::Launch(backend_, kOp, LaunchFor(shape, shape.heads),
                                    QueryGradientKernel<T, kChunks>, attention, gradients));
    return cuda::Launch(backend_, kOp, LaunchFor(shape, shape.kv_heads),
                        KeyGradientKernel<T, kChunks>, attention, gradients);
  });
}

#define LONGHAUL_INSTANTIATE(T)                                                             \
  template absl::StatusOr<std::string> CudaKernels<T>::CausalAttentionKernel(               \
      const CausalAttentionShape&) const;                                                   \
  template absl::Status CudaKernels<T>::CausalAttentionForward(                             \
      const CausalAttentionShape&, absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>, \
      absl::Span<Wide<T>>) const;                                                           \
  template absl::Status CudaKernels<T>::CausalAttentionBackward(                            \
      const CausalAttentionShape&, absl::Span<const T>, absl::Span<const T>,                \
      absl::Span<const Wide<T>>, absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
