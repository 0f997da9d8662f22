#include "compute/backend/cpu/matrix_product.h"

#include <cblas.h>

#include <limits>

#include "base/check.h"

namespace longhaul::compute {
namespace {

constexpr int64_t kTileRows = 192;
// Wide tiles waste less on packing; narrow ones keep several threads busy on small layers.
constexpr int64_t kTileColumnsMax = 384;
constexpr int64_t kTileColumnsMin = 96;
constexpr int64_t kTilesWanted = 8;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
CBLAS_TRANSPOSE Order(const ProductOperand<T>& operand) {
  return operand.transposed ? CblasTrans : CblasNoTrans;
}

int Narrow(int64_t value) {
  LH_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(), "matrix extent ", value);
  return static_cast<int>(value);
}

}  // namespace

template <>
void Multiply<float>(const MatrixProduct<float>& p) {
  cblas_sgemm(CblasRowMajor, Order(p.a), Order(p.b), Narrow(p.m), Narrow(p.n), Narrow(p.k),
              p.factor, p.a.data, Narrow(p.a.stride), p.b.data, Narrow(p.b.stride), p.keep,
              p.result, Narrow(p.result_stride));
}

template <>
void Multiply<double>(const MatrixProduct<double>& p) {
  cblas_dgemm(CblasRowMajor, Order(p.a), Order(p.b), Narrow(p.m), Narrow(p.n), Narrow(p.k),
              p.factor, p.a.data, Narrow(p.a.stride), p.b.data, Narrow(p.b.stride), p.keep,
              p.result, Narrow(p.result_stride));
}

TileGrid::TileGrid(int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      tile_columns_(kTileColumnsMax),
      row_tiles_(DivideUp(rows, kTileRows)) {
  while (tile_columns_ > kTileColumnsMin &&
         row_tiles_ * DivideUp(columns, tile_columns_) < kTilesWanted) {
    tile_columns_ /= 2;
  }
  column_tiles_ = DivideUp(columns, tile_columns_);
}

TileGrid::Tile TileGrid::tile(int64_t index) const {
  const int64_t row = index % row_tiles_ * kTileRows;
  const int64_t column = index / row_tiles_ * tile_columns_;
  return {row, std::min(kTileRows, rows_ - row), column,
          std::min(tile_columns_, columns_ - column)};
}

}  // namespace longhaul::compute
