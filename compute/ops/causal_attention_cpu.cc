#include "compute/ops/causal_attention_cpu.h"

#include <algorithm>
#include <cmath>

#include "compute/backend/cpu/logarithm.h"
#include "compute/backend/cpu/matrix_product.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "model/attention_blocks.h"

namespace longhaul::compute::cpu {
namespace {

constexpr int64_t kBlockRows = model::kAttentionBlockRows;

// The queries, keys and values of one head of one sequence lie in the rows of qkv, `stride` apart.
template <typename T>
struct Head {
  int64_t width;  // of this head
  int64_t stride;
  int64_t output_stride;
  T scale;  // of scores
  const T* queries;
  const T* keys;
  const T* values;
};

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

template <typename T>
Head<T> HeadAt(const CausalAttentionShape& shape, const T* qkv, const HeadOffsets& offsets) {
  return {.width = shape.head_width(),
          .stride = shape.qkv_width(),
          .output_stride = shape.width,
          .scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_width()))),
          .queries = qkv + offsets.queries,
          .keys = qkv + offsets.keys,
          .values = qkv + offsets.values};
}

// A block of queries, [begin, end), and its scores [end - begin, end].
template <typename T>
struct Block {
  int64_t begin, end;
  int64_t stride;  // of scores
  T* scores;
  int64_t rows() const { return end - begin; }
};

template <typename T>
void ComputeScores(const Head<T>& head, const Block<T>& block) {
  Multiply<T>({.m = block.rows(),
               .n = block.end,
               .k = head.width,
               .a = {head.queries + block.begin * head.stride, head.stride, false},
               .b = {head.keys, head.stride, true},
               .result = block.scores,
               .result_stride = block.stride,
               .factor = head.scale});
}

// What of a row of the block the products over it read, in whole vectors.
template <typename T>
int64_t PaddedKeys(const Block<T>& block) {
  return model::AttentionScoreStride(block.end);
}

template <typename T>
void ForwardBlock(const Head<T>& head, const Block<T>& block, T* output, T* lse) {
  const Kernels<T>& kernels = BestKernels<T>();
  RowSoftmax<T> rows[kBlockRows];
  ComputeScores(head, block);
  for (int64_t i = 0; i < block.rows(); ++i) {
    rows[i] = kernels.visible_exponentials(block.scores + i * block.stride, block.begin + i + 1,
                                           PaddedKeys(block));
  }
  Multiply<T>({.m = block.rows(),
               .n = head.width,
               .k = block.end,
               .a = {block.scores, block.stride, false},
               .b = {head.values, head.stride, false},
               .result = output + block.begin * head.output_stride,
               .result_stride = head.output_stride});
  for (int64_t i = 0; i < block.rows(); ++i) {
    T* out = output + (block.begin + i) * head.output_stride;
    kernels.scale(out, static_cast<T>(1 / rows[i].sum), out, head.width);
    lse[block.begin + i] =
        static_cast<T>(static_cast<double>(rows[i].largest) + Logarithm(rows[i].sum));
  }
}

// What backward of one head reads and writes besides the head itself.
template <typename T>
struct HeadGradient {
  const T* output;
  const T* output_gradient;
  const T* lse;
  T* queries;
  T* keys;
  T* values;
  T* score_gradients;  // workspace as large as a block's scores
};

// block.scores become probabilities, gradient.score_gradients the gradients of the scaled scores.
template <typename T>
void ComputeScoreGradients(const Head<T>& head, const Block<T>& block,
                           const HeadGradient<T>& gradient) {
  const Kernels<T>& kernels = BestKernels<T>();
  ComputeScores(head, block);
  Multiply<T>({.m = block.rows(),
               .n = block.end,
               .k = head.width,
               .a = {gradient.output_gradient + block.begin * head.output_stride,
                     head.output_stride, false},
               .b = {head.values, head.stride, true},
               .result = gradient.score_gradients,
               .result_stride = block.stride});
  for (int64_t i = 0; i < block.rows(); ++i) {
    const int64_t row = block.begin + i, at = row * head.output_stride;
    const T mean = kernels.dot(gradient.output_gradient + at, gradient.output + at, head.width);
    kernels.visible_softmax_backward(
        block.scores + i * block.stride, gradient.score_gradients + i * block.stride,
        {gradient.lse[row], mean, head.scale}, row + 1, PaddedKeys(block));
  }
}

// `keep` is 0 for the first block taken of a group, which covers all keys, and 1 for the others,
// which add.
template <typename T>
void BackwardBlock(const Head<T>& head, const Block<T>& block, const HeadGradient<T>& gradient,
                   T keep) {
  ComputeScoreGradients(head, block, gradient);
  Multiply<T>({.m = block.end,
               .n = head.width,
               .k = block.rows(),
               .a = {block.scores, block.stride, true},
               .b = {gradient.output_gradient + block.begin * head.output_stride,
                     head.output_stride, false},
               .result = gradient.values,
               .result_stride = head.stride,
               .keep = keep});
  Multiply<T>({.m = block.rows(),
               .n = head.width,
               .k = block.end,
               .a = {gradient.score_gradients, block.stride, false},
               .b = {head.keys, head.stride, false},
               .result = gradient.queries + block.begin * head.stride,
               .result_stride = head.stride});
  Multiply<T>({.m = block.end,
               .n = head.width,
               .k = block.rows(),
               .a = {gradient.score_gradients, block.stride, true},
               .b = {head.queries + block.begin * head.stride, head.stride, false},
               .result = gradient.keys,
               .result_stride = head.stride,
               .keep = keep});
}

// Calls body(index, region) for `heads` heads (of queries or of keys) of each sequence.
void ForHeads(Backend& backend, int64_t batch, int64_t heads,
              absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t regions = model::AttentionRegions(batch, heads);
  backend.ParallelFor(regions, [&](int64_t region) {
    for (int64_t index = region; index < batch * heads; index += regions) body(index, region);
  });
}

}  // namespace

int64_t CausalAttentionWorkspace(const CausalAttentionShape& shape) {
  return model::AttentionWorkspaceElements(shape.batch, shape.heads, shape.context);
}

template <typename T>
void CausalAttentionForward(Backend& backend, const CausalAttentionShape& shape,
                            absl::Span<const T> qkv, absl::Span<T> output, absl::Span<T> lse,
                            absl::Span<T> workspace) {
  ForHeads(backend, shape.batch, shape.heads, [&](int64_t index, int64_t region) {
    const HeadOffsets offsets = OffsetsOf(shape, index);
    const Head<T> head = HeadAt(shape, qkv.data(), offsets);
    T* scores = workspace.data() + region * 2 * model::AttentionBlockElements(shape.context);
    for (int64_t begin = 0; begin < shape.context; begin += kBlockRows) {
      const int64_t end = std::min(shape.context, begin + kBlockRows);
      ForwardBlock<T>(head, {begin, end, model::AttentionScoreStride(shape.context), scores},
                      output.data() + offsets.output, lse.data() + index * shape.context);
    }
  });
}

template <typename T>
void CausalAttentionBackward(Backend& backend, const CausalAttentionShape& shape,
                             absl::Span<const T> qkv, absl::Span<const T> output,
                             absl::Span<const T> lse, absl::Span<const T> output_gradient,
                             absl::Span<T> qkv_gradient, absl::Span<T> workspace) {
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t last_begin = (shape.context - 1) / kBlockRows * kBlockRows;
  ForHeads(backend, shape.batch, shape.kv_heads, [&](int64_t kv_index, int64_t region) {
    T* scores = workspace.data() + region * 2 * model::AttentionBlockElements(shape.context);
    T keep = 0;
    for (int64_t index = kv_index * group; index < (kv_index + 1) * group; ++index) {
      const HeadOffsets offsets = OffsetsOf(shape, index);
      const Head<T> head = HeadAt(shape, qkv.data(), offsets);
      const HeadGradient<T> gradient{
          .output = output.data() + offsets.output,
          .output_gradient = output_gradient.data() + offsets.output,
          .lse = lse.data() + index * shape.context,
          .queries = qkv_gradient.data() + offsets.queries,
          .keys = qkv_gradient.data() + offsets.keys,
          .values = qkv_gradient.data() + offsets.values,
          .score_gradients = scores + model::AttentionBlockElements(shape.context)};
      for (int64_t begin = last_begin; begin >= 0; begin -= kBlockRows) {
        const int64_t end = std::min(shape.context, begin + kBlockRows);
        BackwardBlock<T>(head, {begin, end, model::AttentionScoreStride(shape.context), scores},
                         gradient, keep);
        keep = 1;
      }
    }
  });
}

#define LONGHAUL_INSTANTIATE(T)                                                              \
  template void CausalAttentionForward<T>(Backend&, const CausalAttentionShape&,             \
                                          absl::Span<const T>, absl::Span<T>, absl::Span<T>, \
                                          absl::Span<T>);                                    \
  template void CausalAttentionBackward<T>(                                                  \
      Backend&, const CausalAttentionShape&, absl::Span<const T>, absl::Span<const T>,       \
      absl::Span<const T>, absl::Span<const T>, absl::Span<T>, absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute::cpu
