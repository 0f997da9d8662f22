#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/matrix_product.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/linear.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::LinearForward(const LinearShape& shape, absl::Span<const T> input,
                                          absl::Span<const T> weight, absl::Span<const T> bias,
                                          absl::Span<T> output) const {
  const TileGrid grid(shape.rows, shape.out, shape.in, backend_.threads());
  backend_.ParallelFor(grid.tiles(), [&](int64_t index) {
    const TileGrid::Tile tile = grid.tile(index);
    Multiply<T>({.m = tile.rows,
                 .n = tile.columns,
                 .k = shape.in,
                 .a = {input.data() + tile.row * shape.in, shape.in, false},
                 .b = {weight.data() + tile.column * shape.in, shape.in, true},
                 .result = output.data() + tile.row * shape.pitch() + tile.column,
                 .result_stride = shape.pitch(),
                 .bias = bias.empty() ? nullptr : bias.data() + tile.column});
  });
  return absl::OkStatus();
}

// Tiles of the weight's gradient, tiles of the input's and chunks of the bias's: none depends on
// another, so all are tasks of one call, the longest first.
template <typename T>
absl::Status CpuKernels<T>::LinearBackward(const LinearShape& shape, absl::Span<const T> input,
                                           absl::Span<const T> weight,
                                           absl::Span<const T> output_gradient,
                                           absl::Span<T> input_gradient,
                                           absl::Span<Wide<T>> weight_gradient,
                                           absl::Span<Wide<T>> bias_gradient) const {
  const TileGrid input_grid(shape.rows, shape.in, shape.out, backend_.threads());
  const TileGrid weight_grid(shape.out, shape.in, shape.rows, backend_.threads());
  const auto input_tile = [&](const TileGrid::Tile& tile) {
    Multiply<T>({.m = tile.rows,
                 .n = tile.columns,
                 .k = shape.out,
                 .a = {output_gradient.data() + tile.row * shape.pitch(), shape.pitch(), false},
                 .b = {weight.data() + tile.column, shape.in, false},
                 .result = input_gradient.data() + tile.row * shape.in + tile.column,
                 .result_stride = shape.in});
  };
  const auto weight_tile = [&](const TileGrid::Tile& tile) {
    Multiply<T>({.m = tile.rows,
                 .n = tile.columns,
                 .k = shape.rows,
                 .a = {output_gradient.data() + tile.row, shape.pitch(), true},
                 .b = {input.data() + tile.column, shape.in, false},
                 .result = weight_gradient.data() + tile.row * shape.in + tile.column,
                 .result_stride = shape.in,
                 .keep = 1});
  };
  const auto bias_columns = [&](int64_t begin, int64_t end) {
    BestKernels<T>().add_column_sums({output_gradient.data() + begin, shape.pitch()}, shape.rows,
                                     end - begin, bias_gradient.data() + begin);
  };
  const int64_t input_tiles = input_gradient.empty() ? 0 : input_grid.tiles();
  const int64_t weight_tiles = weight_grid.tiles();
  const int64_t tiles = weight_tiles + input_tiles;
  const int64_t bias_chunks = bias_gradient.empty() ? 0 : ChunkCount(shape.out, kChunkColumns);
  backend_.ParallelFor(tiles + bias_chunks, [&](int64_t index) {
    if (index < weight_tiles) {
      weight_tile(weight_grid.tile(index));
    } else if (index < tiles) {
      input_tile(input_grid.tile(index - weight_tiles));
    } else {
      RunChunk(index - tiles, shape.out, kChunkColumns, bias_columns);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                \
  template absl::Status CpuKernels<T>::LinearForward(const LinearShape&, absl::Span<const T>,  \
                                                     absl::Span<const T>, absl::Span<const T>, \
                                                     absl::Span<T>) const;                     \
  template absl::Status CpuKernels<T>::LinearBackward(                                         \
      const LinearShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const T>,       \
      absl::Span<T>, absl::Span<Wide<T>>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
