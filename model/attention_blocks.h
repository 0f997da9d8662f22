// How attention is cut into blocks: what the operator executes, and what plans and costs count.
#ifndef LONGHAUL_MODEL_ATTENTION_BLOCKS_H_
#define LONGHAUL_MODEL_ATTENTION_BLOCKS_H_

#include <algorithm>
#include <cstdint>

namespace longhaul::model {

// Queries are taken in blocks; a block multiplies with the keys up to its end only, which skips
// most of the masked half of the scores.
inline constexpr int64_t kAttentionBlockRows = 32;
// Heads share this many workspace regions at most, so that its size is bounded; each region's heads
// run one after another.
inline constexpr int64_t kAttentionRegionsMax = 64;

constexpr int64_t AttentionRegions(int64_t batch, int64_t heads) {
  return std::min(kAttentionRegionsMax, batch * heads);
}

// Elements from one row of scores to the next: rows are padded to whole vectors.
constexpr int64_t AttentionScoreStride(int64_t context) { return (context + 15) / 16 * 16; }

// Elements of one block of scores for all keys.
constexpr int64_t AttentionBlockElements(int64_t context) {
  return std::min(kAttentionBlockRows, context) * AttentionScoreStride(context);
}

// Elements of the whole workspace: for each region a block of scores and one of their gradients.
constexpr int64_t AttentionWorkspaceElements(int64_t batch, int64_t heads, int64_t context) {
  return AttentionRegions(batch, heads) * 2 * AttentionBlockElements(context);
}

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ATTENTION_BLOCKS_H_
