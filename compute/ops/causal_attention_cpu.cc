#include "compute/ops/causal_attention_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  int64_t context;
  int64_t width;  // of this head
  int64_t stride;
  int64_t output_stride;
  T scale;  // of scores
  const T* queries;
  const T* keys;
  const T* values;
};

// Where head `index` begins in a matrix of rows of `row_width` elements.
int64_t HeadOffset(const CausalAttentionShape& shape, int64_t index, int64_t row_width) {
  return index / shape.heads * shape.context * row_width +
         index % shape.heads * (shape.width / shape.heads);
}

template <typename T>
Head<T> HeadAt(const CausalAttentionShape& shape, const T* qkv, int64_t index) {
  const int64_t width = shape.width / shape.heads;
  const T* queries = qkv + HeadOffset(shape, index, 3 * shape.width);
  return {.context = shape.context,
          .width = width,
          .stride = 3 * shape.width,
          .output_stride = shape.width,
          .scale = static_cast<T>(1 / std::sqrt(static_cast<double>(width))),
          .queries = queries,
          .keys = queries + shape.width,
          .values = queries + 2 * shape.width};
}

// A block of queries, [begin, end), and its scores [end - begin, end] with stride context.
template <typename T>
struct Block {
  int64_t begin, end;
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
               .result_stride = head.context,
               .factor = head.scale});
}

// How much of a row the kernels work on: the keys that the query sees, rounded up to whole vectors
// where the block has room, which spares them the slow end of a row.
template <typename T>
int64_t PaddedKeys(const Block<T>& block, int64_t row) {
  constexpr int64_t kVector = 16;
  return std::min(block.end, (row + kVector) / kVector * kVector);
}

// Masks the keys after the query: no probability within the padding, zeros after it, so that
// products over the whole block ignore them.
template <typename T>
void Mask(const Block<T>& block, int64_t row, T* scores) {
  const int64_t padded = PaddedKeys(block, row);
  std::fill(scores + row + 1, scores + padded, -std::numeric_limits<T>::infinity());
  std::fill(scores + padded, scores + block.end, T{0});
}

template <typename T>
void ForwardBlock(const Head<T>& head, const Block<T>& block, T* output, T* lse) {
  const Kernels<T>& kernels = BestKernels<T>();
  T inverse_sums[kBlockRows];
  ComputeScores(head, block);
  for (int64_t row = block.begin; row < block.end; ++row) {
    T* scores = block.scores + (row - block.begin) * head.context;
    Mask(block, row, scores);
    const int64_t keys = PaddedKeys(block, row);
    const T largest = kernels.max(scores, keys);
    const double sum = kernels.exponentials(scores, largest, scores, keys);
    lse[row] = static_cast<T>(static_cast<double>(largest) + Logarithm(sum));
    inverse_sums[row - block.begin] = static_cast<T>(1 / sum);
  }
  Multiply<T>({.m = block.rows(),
               .n = head.width,
               .k = block.end,
               .a = {block.scores, head.context, false},
               .b = {head.values, head.stride, false},
               .result = output + block.begin * head.output_stride,
               .result_stride = head.output_stride});
  for (int64_t row = block.begin; row < block.end; ++row) {
    T* out = output + row * head.output_stride;
    kernels.scale(out, inverse_sums[row - block.begin], out, head.width);
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
               .result_stride = head.context});
  for (int64_t row = block.begin; row < block.end; ++row) {
    T* scores = block.scores + (row - block.begin) * head.context;
    T* score_gradients = gradient.score_gradients + (row - block.begin) * head.context;
    Mask(block, row, scores);
    const int64_t keys = PaddedKeys(block, row);
    kernels.exponentials(scores, gradient.lse[row], scores, keys);
    const T mean = kernels.dot(gradient.output_gradient + row * head.output_stride,
                               gradient.output + row * head.output_stride, head.width);
    kernels.softmax_backward(scores, mean, head.scale, score_gradients, keys);
    std::fill(score_gradients + keys, score_gradients + block.end, T{0});
  }
}

// `keep` is 0 for the first block taken, which covers all keys, and 1 for the others, which add.
template <typename T>
void BackwardBlock(const Head<T>& head, const Block<T>& block, const HeadGradient<T>& gradient,
                   T keep) {
  ComputeScoreGradients(head, block, gradient);
  Multiply<T>({.m = block.end,
               .n = head.width,
               .k = block.rows(),
               .a = {block.scores, head.context, true},
               .b = {gradient.output_gradient + block.begin * head.output_stride,
                     head.output_stride, false},
               .result = gradient.values,
               .result_stride = head.stride,
               .keep = keep});
  Multiply<T>({.m = block.rows(),
               .n = head.width,
               .k = block.end,
               .a = {gradient.score_gradients, head.context, false},
               .b = {head.keys, head.stride, false},
               .result = gradient.queries + block.begin * head.stride,
               .result_stride = head.stride});
  Multiply<T>({.m = block.end,
               .n = head.width,
               .k = block.rows(),
               .a = {gradient.score_gradients, head.context, true},
               .b = {head.queries + block.begin * head.stride, head.stride, false},
               .result = gradient.keys,
               .result_stride = head.stride,
               .keep = keep});
}

// Calls body(head index, region) for the heads of all sequences.
void ForHeads(Backend& backend, const CausalAttentionShape& shape,
              absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t regions = model::AttentionRegions(shape.batch, shape.heads);
  const int64_t heads = shape.batch * shape.heads;
  backend.ParallelFor(regions, [&](int64_t region) {
    for (int64_t index = region; index < heads; index += regions) body(index, region);
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
  ForHeads(backend, shape, [&](int64_t index, int64_t region) {
    const Head<T> head = HeadAt(shape, qkv.data(), index);
    T* scores = workspace.data() + region * 2 * model::AttentionBlockElements(shape.context);
    for (int64_t begin = 0; begin < shape.context; begin += kBlockRows) {
      ForwardBlock<T>(head, {begin, std::min(shape.context, begin + kBlockRows), scores},
                      output.data() + HeadOffset(shape, index, shape.width),
                      lse.data() + index * shape.context);
    }
  });
}

template <typename T>
void CausalAttentionBackward(Backend& backend, const CausalAttentionShape& shape,
                             absl::Span<const T> qkv, absl::Span<const T> output,
                             absl::Span<const T> lse, absl::Span<const T> output_gradient,
                             absl::Span<T> qkv_gradient, absl::Span<T> workspace) {
  ForHeads(backend, shape, [&](int64_t index, int64_t region) {
    const Head<T> head = HeadAt(shape, qkv.data(), index);
    const int64_t output_offset = HeadOffset(shape, index, shape.width);
    T* queries = qkv_gradient.data() + HeadOffset(shape, index, 3 * shape.width);
    T* scores = workspace.data() + region * 2 * model::AttentionBlockElements(shape.context);
    const HeadGradient<T> gradient{
        .output = output.data() + output_offset,
        .output_gradient = output_gradient.data() + output_offset,
        .lse = lse.data() + index * shape.context,
        .queries = queries,
        .keys = queries + shape.width,
        .values = queries + 2 * shape.width,
        .score_gradients = scores + model::AttentionBlockElements(shape.context)};
    const int64_t last_begin = (shape.context - 1) / kBlockRows * kBlockRows;
    for (int64_t begin = last_begin; begin >= 0; begin -= kBlockRows) {
      const int64_t end = std::min(shape.context, begin + kBlockRows);
      BackwardBlock<T>(head, {begin, end, scores}, gradient, begin == last_begin ? T{0} : T{1});
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
