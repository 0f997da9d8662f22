// What forward and backward of attention have in common. Scores are kept transposed, a row for each
// key and a column for each of 32 queries: so the softmax of every query is a lane, keys and values
// are read where they are stored, and only small blocks are packed. The bits of an element depend
// on neither the width of registers nor other sequences. Included through kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BLOCKS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BLOCKS_H_

#include "compute/backend/cpu/simd/block_product.h"
#include "compute/backend/cpu/simd/elementwise_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/backend/cpu/simd/pack.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

inline constexpr int64_t kQueries = kAttentionQueries;
// Rows of a product taken together; divides the blocks of queries and of keys.
inline constexpr int kAttentionRows = LONGHAUL_REGISTER_BYTES == 64 ? 8 : 4;
static_assert(kQueries % kAttentionRows == 0 && kQueries == 2 * kLanes);
static_assert(kAttentionColumns % kBlockColumns<float> == 0);

// A part of the context.
struct Positions {
  int64_t begin, count;
};

// left [target.rows, depth] * a packed matrix [depth, target.columns], whose panels of
// kBlockColumns columns lie right_step elements apart for each column.
template <typename T, bool kSideBySide>
struct PanelProduct {
  LeftRows<T, kSideBySide> left;
  const T* right;
  int64_t right_step;
  int64_t depth;
  BlockTarget<T> target;
};

// `spare` holds kAttentionRows rows of the depth: for the last rows, where not as many may be read.
template <typename T, bool kSideBySide>
void MultiplyPanels(const PanelProduct<T, kSideBySide>& product, T* spare) {
  BlockTarget<T> target = product.target;
  for (int64_t row = 0; row < product.target.rows; row += kAttentionRows) {
    LeftRows<T, kSideBySide> left = product.left;
    left.data += kSideBySide ? row : row * left.step;
    target.rows = AtMost(product.target.rows - row, kAttentionRows);
    if constexpr (!kSideBySide) {
      if (target.rows < kAttentionRows) {
        left = CopyLeftRows<kAttentionRows>(left, product.depth, target.rows, spare, product.depth);
      }
    }
    for (int64_t c = 0; c < product.target.columns; c += kBlockColumns<T>) {
      target.result = product.target.result + row * target.stride + c;
      target.columns = AtMost(product.target.columns - c, kBlockColumns<T>);
      MultiplyBlock<T, kAttentionRows, kSideBySide>(left, product.right + c * product.right_step,
                                                    product.depth, target);
    }
  }
}

// Rows [0, rows) of a matrix of `width` columns as a right matrix: [rows, width].
template <typename T>
void PackRows(const T* from, int64_t stride, int64_t rows, int64_t width, T* to) {
  for (int64_t c = 0; c < width; c += kBlockColumns<T>) {
    PackRight(from + c, stride, false, rows, width - c, to + c * rows);
  }
}

// The same transposed, for a block of queries: [width, kQueries], zeros where there is no query.
template <typename T>
void PackQueries(const T* from, int64_t stride, int64_t rows, int64_t width, T* to) {
  for (int64_t c = 0; c < kQueries; c += kBlockColumns<T>) {
    PackRight(from + c * stride, stride, true, width, rows - c, to + c * width);
  }
}

// A block's queries, transposed and scaled: what scores are products with.
template <typename T>
void PackScaledQueries(const AttentionHead<T>& head, const Positions& queries) {
  T* const packed = head.workspace.queries_transposed;
  PackQueries(head.queries + queries.begin * head.stride, head.stride, queries.count, head.width,
              packed);
  ScaleRow(packed, head.scale, packed, kQueries * head.width);
}

// scores [keys.count, kQueries] = rows of keys, or of values, * a packed block.
template <typename T>
struct ScoreProduct {
  const T* rows;
  const T* block;
  T* scores;
};

template <typename T>
void MultiplyByQueries(const AttentionHead<T>& head, const Positions& keys,
                       const ScoreProduct<T>& product) {
  BlockTarget<T> target = {};
  target.result = product.scores;
  target.stride = kQueries;
  target.rows = keys.count;
  target.columns = kQueries;
  MultiplyPanels<T, false>({{product.rows + keys.begin * head.stride, head.stride},
                            product.block,
                            head.width,
                            head.width,
                            target},
                           head.workspace.spare);
}

// Calls body(keys) for the blocks of keys that a block of queries sees any of.
template <typename Body>
inline void ForKeys(const Positions& queries, const Body& body) {
  const int64_t end = queries.begin + queries.count;
  for (int64_t begin = 0; begin < end; begin += kAttentionKeys) {
    body(Positions{begin, AtMost(end - begin, kAttentionKeys)});
  }
}

// Queries that do not see the key of row `row`, from lane `first` of the block on.
inline int64_t BlindQueries(const Positions& queries, const Positions& keys, int64_t row,
                            int64_t first) {
  return keys.begin + row - queries.begin - first;
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_ATTENTION_BLOCKS_H_
