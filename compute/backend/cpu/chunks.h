// Cuts a range into chunks whose bounds depend on the range only, and runs them over the threads.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_CHUNKS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_CHUNKS_H_

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// Elements that are worth waking a thread for.
inline constexpr int64_t kChunkElements = 16384;
// Columns of a chunk where work is cut by columns: whole cache lines.
inline constexpr int64_t kChunkColumns = 64;

inline int64_t ChunkCount(int64_t total, int64_t chunk) { return (total + chunk - 1) / chunk; }

// Rows of a chunk of rows of `width` elements.
inline int64_t ChunkRows(int64_t width) { return std::max<int64_t>(1, kChunkElements / width); }

// Calls body(begin, end) for chunk `index` of [0, total).
inline void RunChunk(int64_t index, int64_t total, int64_t chunk,
                     absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(index * chunk, std::min(total, (index + 1) * chunk));
}

// Calls body(begin, end) for all chunks of [0, total), over the backend's threads.
inline void ForChunks(Backend& backend, int64_t total, int64_t chunk,
                      absl::FunctionRef<void(int64_t, int64_t)> body) {
  backend.ParallelFor(ChunkCount(total, chunk),
                      [&](int64_t index) { RunChunk(index, total, chunk, body); });
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_CHUNKS_H_
