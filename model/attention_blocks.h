// How attention is cut into blocks: what the operator executes, and what plans and costs count.
#ifndef LONGHAUL_MODEL_ATTENTION_BLOCKS_H_
#define LONGHAUL_MODEL_ATTENTION_BLOCKS_H_

#include <algorithm>
#include <cstdint>

namespace longhaul::model {

// Queries are taken in blocks; a block multiplies with the keys up to its end only, which skips
// most of the masked half of the scores. Keys are taken in blocks too, so that scores stay in the
// first cache.
inline constexpr int64_t kAttentionBlockQueries = 32;
inline constexpr int64_t kAttentionBlockKeys = 64;
// Packed rows of a head are padded to whole registers.
inline constexpr int64_t kAttentionColumns = 32;
// Rows that are copied where fewer may be read than a product takes together.
inline constexpr int64_t kAttentionSpareRows = 8;
// Heads share this many workspace regions at most, so that its size is bounded; each region's heads
// run one after another.
inline constexpr int64_t kAttentionRegionsMax = 64;

constexpr int64_t AttentionRegions(int64_t batch, int64_t heads) {
  return std::min(kAttentionRegionsMax, batch * heads);
}

constexpr int64_t AttentionPaddedWidth(int64_t head_width) {
  return (head_width + kAttentionColumns - 1) / kAttentionColumns * kAttentionColumns;
}

// Elements of one region: packed keys or values of the whole context, a block of scores and one of
// their gradients, four blocks of queries and the like, and the spare rows.
constexpr int64_t AttentionRegionElements(int64_t context, int64_t head_width) {
  return (context + 4 * kAttentionBlockQueries + kAttentionSpareRows) *
             AttentionPaddedWidth(head_width) +
         2 * kAttentionBlockKeys * kAttentionBlockQueries;
}

// On cards backward adds in a fixed order where its tensors for that take so many bytes at most, as
// cuDNN's frontend bounds what it takes by itself; else with atomics.
inline constexpr int64_t kInOrderAttentionBytesMax = int64_t{256} << 20;

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ATTENTION_BLOCKS_H_
