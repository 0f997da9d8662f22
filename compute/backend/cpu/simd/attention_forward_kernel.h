// Attention of one head, forward: blocks of keys one after another, with the largest score so far
// (Milakov and Gimelshein 2018, algorithm 3). Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_FORWARD_KERNEL_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_FORWARD_KERNEL_H_

#include "compute/backend/cpu/logarithm.h"
#include "compute/backend/cpu/simd/attention_blocks.h"
#include "compute/backend/cpu/simd/exponential.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

// Of each query of a block, over the keys seen so far.
template <typename T>
struct RunningSoftmax {
  T largest[kQueries];
  T sum[kQueries];     // of exp(score - largest)
  T factor[kQueries];  // what the latest block of keys made of earlier exponentials
};

// scores = exp(scores - largest), zero where a query does not see the key.
template <typename T>
void AddToSoftmax(const Positions& queries, const Positions& keys, T* scores,
                  RunningSoftmax<T>& softmax) {
  const T lowest = -static_cast<T>(__builtin_inf());
  const auto larger = [](Register<T> a, Register<T> b) { return b > a ? b : a; };
  const auto exponential = [](Register<T> x) { return Exponential<T>(x); };
  for (int64_t lane = 0; lane < kQueries; lane += kLanes) {
    const Lanes<T> before = Load(softmax.largest + lane);
    Lanes<T> largest = before;
    for (int64_t row = 0; row < keys.count; ++row) {
      T* at = scores + row * kQueries + lane;
      const int64_t blind = BlindQueries(queries, keys, row, lane);
      Lanes<T> seen = Load(at);
      if (blind > 0) {
        seen = LanesFrom(seen, blind, lowest);
        Store(at, seen);
      }
      largest = Map<T>(larger, largest, seen);
    }
    Lanes<T> sum = Fill(T{0});
    for (int64_t row = 0; row < keys.count; ++row) {
      T* at = scores + row * kQueries + lane;
      const Lanes<T> exponentials = Map<T>(exponential, Load(at) - largest);
      Store(at, exponentials);
      sum = sum + exponentials;
    }
    const Lanes<T> factor = Map<T>(exponential, before - largest);
    Store(softmax.factor + lane, factor);
    Store(softmax.sum + lane, Load(softmax.sum + lane) * factor + sum);
    Store(softmax.largest + lane, largest);
  }
}

// The rows of the weighted values, `width` columns `stride` apart.
template <typename T>
void ScaleRows(const T* factors, int64_t rows, int64_t width, int64_t stride, T* values) {
  for (int64_t r = 0; r < rows; ++r) {
    if (factors[r] == T{1}) continue;
    const Lanes<T> factor = Fill(factors[r]);
    for (int64_t c = 0; c < width; c += kLanes) {
      T* at = values + r * stride + c;
      Store(at, Load(at) * factor);
    }
  }
}

template <typename T>
void AttendQueries(const AttentionHead<T>& head, const Positions& queries, T* output, T* lse) {
  const AttentionSpace<T>& space = head.workspace;
  RunningSoftmax<T> softmax;
  for (int64_t i = 0; i < kQueries; ++i) {
    softmax.largest[i] = -static_cast<T>(__builtin_inf());
    softmax.sum[i] = 0;
  }
  BlockTarget<T> target = {};
  target.result = space.queries;
  target.stride = head.padded_width;
  target.rows = queries.count;
  target.columns = head.width;
  PackScaledQueries(head, queries);
  ForKeys(queries, [&](const Positions& keys) {
    MultiplyByQueries(head, keys, {head.keys, space.queries_transposed, space.scores});
    AddToSoftmax(queries, keys, space.scores, softmax);
    target.add = keys.begin > 0;
    if (target.add) {
      ScaleRows(softmax.factor, queries.count, head.width, head.padded_width, target.result);
    }
    MultiplyPanels<T, true>({{space.scores, kQueries},
                             space.packed + keys.begin * kBlockColumns<T>,
                             head.context,
                             keys.count,
                             target},
                            space.spare);
  });
  for (int64_t i = 0; i < queries.count; ++i) {
    const Lanes<T> inverse = Fill(T{1} / softmax.sum[i]);
    const T* from = target.result + i * head.padded_width;
    T* to = output + (queries.begin + i) * head.output_stride;
    ForLanes(head.width,
             [&](int64_t c, auto count) { Store(to + c, Load(from + c) * inverse, count); });
    lse[queries.begin + i] = static_cast<T>(static_cast<double>(softmax.largest[i]) +
                                            Logarithm(static_cast<double>(softmax.sum[i])));
  }
}

template <typename T>
void Attend(const AttentionHead<T>& head, T* output, T* lse) {
  PackRows(head.values, head.stride, head.context, head.width, head.workspace.packed);
  for (int64_t begin = 0; begin < head.context; begin += kQueries) {
    AttendQueries(head, {begin, AtMost(head.context - begin, kQueries)}, output, lse);
  }
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_FORWARD_KERNEL_H_
