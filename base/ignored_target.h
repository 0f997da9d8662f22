// What stands for "no target" among token ids, where batches are made and where the loss reads
// them.
#ifndef LONGHAUL_BASE_IGNORED_TARGET_H_
#define LONGHAUL_BASE_IGNORED_TARGET_H_

#include <cstdint>

namespace longhaul {

// Target that the loss ignores: padding, and the first token of a document where documents are
// masked or separate, since nothing before it says what it is.
inline constexpr int32_t kIgnoredTarget = -1;

}  // namespace longhaul

#endif  // LONGHAUL_BASE_IGNORED_TARGET_H_
