// Attention of one head, backward: probabilities are made again from the kept log-sum-exp (Dao et
// al. 2022, section 3.1 and algorithm 4). Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BACKWARD_KERNEL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BACKWARD_KERNEL_H_

#include "compute/backend/cpu/simd/attention_blocks.h"
#include "compute/backend/cpu/simd/exponential.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Of each query of a block.
template <typename T>
struct KeptSoftmax {
  T log_sum_exp[kQueries];
  T mean[kQueries];  // of the probabilities' gradients, weighted by the probabilities
};

// scores become probabilities, their gradients those of the scaled scores.
template <typename T>
void SoftmaxGradients(const AttentionHead<T>& head, const Positions& queries, const Positions& keys,
                      const KeptSoftmax<T>& kept) {
  const Lanes<T> scale = Fill(head.scale);
  for (int64_t lane = 0; lane < kQueries; lane += kLanes) {
    const Lanes<T> shift = Load(kept.log_sum_exp + lane), mean = Load(kept.mean + lane);
    for (int64_t row = 0; row < keys.count; ++row) {
      T* scores = head.workspace.scores + row * kQueries + lane;
      T* gradients = head.workspace.score_gradients + row * kQueries + lane;
      Lanes<T> probabilities =
          Map<T>([](Register<T> x) { return Exponential<T>(x); }, Load(scores) - shift);
      const int64_t blind = BlindQueries(queries, keys, row, lane);
      if (blind > 0) probabilities = LanesFrom(probabilities, blind, T{0});
      Store(scores, probabilities);
      Store(gradients, scale * probabilities * (Load(gradients) - mean));
    }
  }
}

// kept.mean is the product of each query's output and its gradient, both given packed.
template <typename T>
void MultiplyOutputs(const AttentionHead<T>& head, const T* outputs, const T* gradients, T* means) {
  for (int64_t c = 0; c < kQueries; c += kVectorLanes<T>) {
    const int64_t panel = c / kBlockColumns<T> * kBlockColumns<T>;
    const int64_t at = panel * head.width + (c - panel);
    Register<T> sum = {};
    for (int64_t p = 0; p < head.width; ++p) {
      sum = MultiplyAdd(LoadRegister(outputs + at + p * kBlockColumns<T>),
                        LoadRegister(gradients + at + p * kBlockColumns<T>), sum);
    }
    StoreRegister(means + c, sum);
  }
}

// Packs what the products with the block's queries read.
template <typename T>
void PackBlock(const AttentionHead<T>& head, const AttentionGradient<T>& gradient,
               const Positions& queries, KeptSoftmax<T>& kept) {
  const AttentionSpace<T>& space = head.workspace;
  const int64_t at = queries.begin * head.output_stride;
  const T* from = head.queries + queries.begin * head.stride;
  const auto pack_outputs = [&](const T* outputs, T* to) {
    PackQueries(outputs + at, head.output_stride, queries.count, head.width, to);
  };
  pack_outputs(gradient.output_gradient, space.output_gradients_transposed);
  pack_outputs(gradient.output, space.queries_transposed);
  MultiplyOutputs(head, space.queries_transposed, space.output_gradients_transposed, kept.mean);
  PackScaledQueries(head, queries);
  PackRows(from, head.stride, queries.count, head.width, space.queries);
  PackRows(gradient.output_gradient + at, head.output_stride, queries.count, head.width,
           space.output_gradients);
  for (int64_t i = 0; i < kQueries; ++i) {
    kept.log_sum_exp[i] = i < queries.count ? gradient.lse[queries.begin + i] : T{0};
  }
}

// Brings a block of rows near before it is packed: they lie far apart.
template <typename T>
void FetchRows(const T* from, int64_t stride, int64_t width) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t row = 0; row < kQueries; ++row) {
    for (int64_t c = 0; c < width; c += kLine) __builtin_prefetch(from + row * stride + c);
  }
}

// result [keys.count, width] (+)= scores of the block, or their gradients, * a packed block.
template <typename T>
struct KeyProduct {
  const T* scores;
  const T* block;
  T* result;
  bool add;
};

template <typename T>
void AddForKeys(const AttentionHead<T>& head, const Positions& queries, const Positions& keys,
                const KeyProduct<T>& product) {
  BlockTarget<T> target = {};
  target.result = product.result + keys.begin * head.stride;
  target.stride = head.stride;
  target.rows = keys.count;
  target.columns = head.width;
  target.add = product.add;
  MultiplyPanels<T, false>(
      {{product.scores, kQueries}, product.block, queries.count, queries.count, target},
      head.workspace.spare);
}

template <typename T>
void AttendQueriesBackward(const AttentionHead<T>& head, const AttentionGradient<T>& gradient,
                           const Positions& queries, bool add) {
  const AttentionSpace<T>& space = head.workspace;
  KeptSoftmax<T> kept;
  PackBlock(head, gradient, queries, kept);
  if (queries.begin > 0) {
    const int64_t next = queries.begin - kQueries;
    FetchRows(head.queries + next * head.stride, head.stride, head.width);
    FetchRows(gradient.output + next * head.output_stride, head.output_stride, head.width);
    FetchRows(gradient.output_gradient + next * head.output_stride, head.output_stride, head.width);
  }
  BlockTarget<T> target = {};
  target.result = gradient.queries + queries.begin * head.stride;
  target.stride = head.stride;
  target.rows = queries.count;
  target.columns = head.width;
  ForKeys(queries, [&](const Positions& keys) {
    MultiplyByQueries(head, keys, {head.keys, space.queries_transposed, space.scores});
    MultiplyByQueries(head, keys,
                      {head.values, space.output_gradients_transposed, space.score_gradients});
    SoftmaxGradients(head, queries, keys, kept);
    AddForKeys(head, queries, keys, {space.scores, space.output_gradients, gradient.values, add});
    AddForKeys(head, queries, keys, {space.score_gradients, space.queries, gradient.keys, add});
    target.add = keys.begin > 0;
    MultiplyPanels<T, true>({{space.score_gradients, kQueries},
                             space.packed + keys.begin * kBlockColumns<T>,
                             head.context,
                             keys.count,
                             target},
                            space.spare);
  });
}

// The last block of queries comes first: it sees all keys, so that the others add.
template <typename T>
void AttendBackward(const AttentionHead<T>& head, const AttentionGradient<T>& gradient) {
  PackRows(head.keys, head.stride, head.context, head.width, head.workspace.packed);
  bool add = gradient.add;
  for (int64_t begin = (head.context - 1) / kQueries * kQueries; begin >= 0; begin -= kQueries) {
    AttendQueriesBackward(head, gradient, {begin, AtMost(head.context - begin, kQueries)}, add);
    add = true;
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BACKWARD_KERNEL_H_
