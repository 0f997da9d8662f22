// Single-threaded products of views, and the tiles that work is cut into. They are our own where
// the processor has fused multiply-add (x86 since 2013) and otherwise BLAS, for which this is the
// one door.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_MATRIX_PRODUCT_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_MATRIX_PRODUCT_H_

#include <algorithm>
#include <cstdint>

namespace longhaul::compute {

// A row-major matrix, read as it is stored or transposed.
template <typename T>
struct ProductOperand {
  const T* data = nullptr;
  int64_t stride = 0;  // elements between stored rows
  bool transposed = false;
};

// result [m, n] = a [m, k] * b [k, n] + keep * result + bias; keep is 0 (the old result is
// not read) or 1. m, n and k fit in 31 bits; k >= 1.
template <typename T>
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  ProductOperand<T> a, b;  // as multiplied: a is [m, k] after transposition
  T* result = nullptr;
  int64_t result_stride = 0;
  T keep = 0;
  const T* bias = nullptr;  // [n], added to each row; none with keep = 1
};

// Runs on the calling thread. The bits depend on the shapes and the numeric class only.
template <typename T>
void Multiply(const MatrixProduct<T>& product);

template <>
void Multiply<float>(const MatrixProduct<float>& product);
template <>
void Multiply<double>(const MatrixProduct<double>& product);

// A grid of tiles over a [rows, columns] result whose elements are sums of `depth` products, for
// `threads` threads. No bit of our own products depends on the cut. OpenBLAS gives other bits for
// another one, so with it the bounds depend on the shape only.
class TileGrid {
 public:
  struct Tile {
    int64_t row, rows, column, columns;
  };

  TileGrid(int64_t rows, int64_t columns, int64_t depth, int threads);
  int64_t tiles() const { return row_tiles_ * column_tiles_; }
  // Neighbouring indices share their columns.
  Tile tile(int64_t index) const;

 private:
  int64_t rows_, columns_;
  int64_t tile_rows_, tile_columns_;
  int64_t row_tiles_, column_tiles_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_MATRIX_PRODUCT_H_
