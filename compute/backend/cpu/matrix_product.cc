#include "compute/backend/cpu/matrix_product.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/check.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute {
namespace {

// Large tiles waste less on packing; several for each thread keep all busy to the end, unless a
// tile would then have less work than is worth cutting.
constexpr int64_t kTilesWantedPerThread = 2;
constexpr int64_t kBlasTileExtentMax = 512;
constexpr int64_t kBlasTilesWanted = 4;
constexpr int64_t kTileProductsMin = int64_t{40} << 20;
constexpr int64_t kTileMultiple = 96;  // whole blocks of our own products

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
CBLAS_TRANSPOSE Order(const ProductOperand<T>& operand) {
  return operand.transposed ? CblasTrans : CblasNoTrans;
}

int Narrow(int64_t value) {
  LH_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(), "matrix extent ", value);
  return static_cast<int>(value);
}

template <typename T>
void CheckProduct(const MatrixProduct<T>& p) {
  LH_CHECK(p.k >= 1 && (p.keep == 0 || (p.keep == 1 && p.bias == nullptr)), "k ", p.k, ", keep ",
           p.keep);
}

// BLAS adds to what is there; returns what it must keep.
template <typename T>
T PlaceBias(const MatrixProduct<T>& p) {
  if (p.bias == nullptr) return p.keep;
  for (int64_t row = 0; row < p.m; ++row) {
    std::copy_n(p.bias, p.n, p.result + row * p.result_stride);
  }
  return 1;
}

// Our own product, where the processor has fused multiply-add.
template <typename T>
bool MultiplyByKernel(const MatrixProduct<T>& p) {
  const auto multiply = BestKernels<T>().multiply;
  if (multiply == nullptr) return false;
  // Once for each thread: a step allocates nothing.
  thread_local const std::unique_ptr<T[]> workspace(new T[kProductWorkspace]);
  multiply({.m = p.m,
            .n = p.n,
            .k = p.k,
            .a = {p.a.data, p.a.stride, p.a.transposed},
            .b = {p.b.data, p.b.stride, p.b.transposed},
            .result = p.result,
            .result_stride = p.result_stride,
            .add = p.keep == 1,
            .bias = p.bias,
            .workspace = workspace.get()});
  return true;
}

}  // namespace

template <>
void Multiply<float>(const MatrixProduct<float>& p) {
  CheckProduct(p);
  if (MultiplyByKernel(p)) return;
  cblas_sgemm(CblasRowMajor, Order(p.a), Order(p.b), Narrow(p.m), Narrow(p.n), Narrow(p.k), 1,
              p.a.data, Narrow(p.a.stride), p.b.data, Narrow(p.b.stride), PlaceBias(p), p.result,
              Narrow(p.result_stride));
}

template <>
void Multiply<double>(const MatrixProduct<double>& p) {
  CheckProduct(p);
  if (MultiplyByKernel(p)) return;
  cblas_dgemm(CblasRowMajor, Order(p.a), Order(p.b), Narrow(p.m), Narrow(p.n), Narrow(p.k), 1,
              p.a.data, Narrow(p.a.stride), p.b.data, Narrow(p.b.stride), PlaceBias(p), p.result,
              Narrow(p.result_stride));
}

// Equal tiles, so that no thread waits for the one with the largest.
TileGrid::TileGrid(int64_t rows, int64_t columns, int64_t depth, int threads)
    : rows_(rows), columns_(columns), row_tiles_(1), column_tiles_(1) {
  int64_t wanted = threads == 1 ? 1 : kTilesWantedPerThread * threads;
  if (BestKernels<float>().multiply == nullptr) {
    row_tiles_ = DivideUp(rows, kBlasTileExtentMax);
    column_tiles_ = DivideUp(columns, kBlasTileExtentMax);
    wanted = kBlasTilesWanted;
  }

  const double products =
      static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  for (;;) {
    const int64_t doubled = 2 * row_tiles_ * column_tiles_;
    if (doubled > wanted || products < static_cast<double>(doubled * kTileProductsMin)) break;
    (rows / row_tiles_ > columns / column_tiles_ ? row_tiles_ : column_tiles_) *= 2;
  }
  const auto tile_extent = [](int64_t extent, int64_t tiles) {
    return DivideUp(DivideUp(extent, tiles), kTileMultiple) * kTileMultiple;
  };
  tile_rows_ = tile_extent(rows, row_tiles_);
  tile_columns_ = tile_extent(columns, column_tiles_);
  row_tiles_ = DivideUp(rows, tile_rows_);
  column_tiles_ = DivideUp(columns, tile_columns_);
}

TileGrid::Tile TileGrid::tile(int64_t index) const {
  const int64_t row = index % row_tiles_ * tile_rows_;
  const int64_t column = index / row_tiles_ * tile_columns_;
  return {row, std::min(tile_rows_, rows_ - row), column,
          std::min(tile_columns_, columns_ - column)};
}

}  // namespace longhaul::compute
