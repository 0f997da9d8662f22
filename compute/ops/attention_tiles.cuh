// Parts of heads as tiles in shared memory, and products of them. For device code of
// causal_attention_cuda.cu.
#ifndef LONGHAUL_COMPUTE_OPS_ATTENTION_TILES_CUH_
#define LONGHAUL_COMPUTE_OPS_ATTENTION_TILES_CUH_

#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/launch.h"
#include "compute/backend/element.h"

namespace longhaul::compute::attention_tiles {

inline constexpr int kWarps = 4;  // of a block
inline constexpr int kThreads = kWarps * cuda::kWarp;
inline constexpr int kRowsOfWarp = 4;
inline constexpr int kRows = kWarps * kRowsOfWarp;  // that a block computes
inline constexpr int kLanes = cuda::kWarp;          // rows that it goes over at a time, one a lane
inline constexpr int kChunk = 64;                   // columns of a head that lie in shared memory
inline constexpr int kColumnsOfLane = kChunk / kLanes;
inline constexpr int kPadded = kChunk + 1;  // so that lanes read from different banks

// Of this thread.
__device__ inline int Warp() { return static_cast<int>(threadIdx.x) / kLanes; }
__device__ inline int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }

// Some rows of one head inside a matrix.
template <typename T>
struct HeadRows {
  const T* values;  // of position 0
  int64_t stride;   // between positions
};

// The part [column, column + kChunk) of `count` rows from position `first`; zero where there is
// none.
template <typename T, int kCount>
__device__ void Load(const HeadRows<T>& from, int64_t first, int64_t context, int64_t width,
                     int64_t column, Wide<T> (&to)[kCount][kPadded]) {
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kChunk; i += kThreads) {
    const int row = i / kChunk, at = i % kChunk;
    const bool inside = first + row < context && column + at < width;
    to[row][at] = inside ? Wide<T>(from.values[(first + row) * from.stride + column + at]) : 0;
  }
}

// Products of this warp's rows of `a` with this lane's row of `b`, over all columns.
template <typename T>
struct Products {
  Wide<T> (&a)[kRows][kPadded];
  Wide<T> (&b)[kLanes][kPadded];

  __device__ void operator()(const HeadRows<T>& a_rows, int64_t a_first, const HeadRows<T>& b_rows,
                             int64_t b_first, int64_t context, int64_t width,
                             Wide<T> (&sums)[kRowsOfWarp]) const {
    const int warp = Warp(), lane = Lane();
    LONGHAUL_UNROLL
    for (int r = 0; r < kRowsOfWarp; ++r) sums[r] = 0;
    for (int64_t column = 0; column < width; column += kChunk) {
      Load(a_rows, a_first, context, width, column, a);
      Load(b_rows, b_first, context, width, column, b);
      __syncthreads();
      for (int i = 0; i < kChunk; ++i) {
        LONGHAUL_UNROLL
        for (int r = 0; r < kRowsOfWarp; ++r) sums[r] += a[warp * kRowsOfWarp + r][i] * b[lane][i];
      }
      __syncthreads();
    }
  }
};

// result[r][...] += sum over lanes of weights[row][lane] * (the lane's row of `rows`), for the
// columns of this lane in every chunk. kChunks * kChunk is at least the width.
template <typename T, int kChunks>
__device__ void AddWeighted(const HeadRows<T>& rows, int64_t first, int64_t context, int64_t width,
                            const Wide<T> (&weights)[kRows][kLanes],
                            Wide<T> (&tile)[kLanes][kPadded],
                            Wide<T> (&result)[kRowsOfWarp][kChunks * kColumnsOfLane]) {
  const int warp = Warp(), lane = Lane();
  LONGHAUL_UNROLL
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    Load(rows, first, context, width, int64_t{chunk} * kChunk, tile);
    __syncthreads();
    for (int other = 0; other < kLanes; ++other) {
      LONGHAUL_UNROLL
      for (int c = 0; c < kColumnsOfLane; ++c) {
        const Wide<T> value = tile[other][lane + c * kLanes];
        LONGHAUL_UNROLL
        for (int r = 0; r < kRowsOfWarp; ++r) {
          result[r][chunk * kColumnsOfLane + c] += weights[warp * kRowsOfWarp + r][other] * value;
        }
      }
    }
    __syncthreads();
  }
}

// Calls body(r, position, column, place in a warp's result) for what this thread holds.
template <int kChunks, typename Body>
__device__ void ForResults(int64_t first, int64_t context, int64_t width, const Body& body) {
  const int warp = Warp(), lane = Lane();
  LONGHAUL_UNROLL
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int64_t position = first + warp * kRowsOfWarp + r;
    LONGHAUL_UNROLL
    for (int i = 0; i < kChunks * kColumnsOfLane; ++i) {
      const int64_t column = int64_t{i} * kLanes + lane;
      if (position < context && column < width) body(r, position, column, i);
    }
  }
}

}  // namespace longhaul::compute::attention_tiles

#endif  // LONGHAUL_COMPUTE_OPS_ATTENTION_TILES_CUH_
