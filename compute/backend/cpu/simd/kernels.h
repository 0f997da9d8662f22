// The inner loops of the CPU operators, compiled once per instruction set. All builds with fused
// multiply-add give the same bits, and so do all without: sums run in 16 lanes combined by a fixed
// tree whatever the register width, nothing is contracted or reassociated, what is rounded once is
// written as MultiplyAdd, and exp is our own polynomial.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNELS_H_

#include <cstdint>

#include "compute/backend/adamw_factors.h"

namespace longhaul::compute {

// One row of layer normalisation: `statistics` of the forward pass.
template <typename T>
struct RowStatistics {
  T mean;
  T inverse_deviation;
};

// A strided matrix; element (r, c) is data[r * stride + c].
template <typename T>
struct MatrixView {
  const T* data;
  int64_t stride;
};

// gradient(r, c) * (input(r, c) - means[r]) * inverse_deviations[r]; without means none is
// subtracted.
template <typename T>
struct NormalizedProduct {
  MatrixView<T> gradient;
  MatrixView<T> input;
  const T* means;  // or null
  const T* inverse_deviations;
};

// Which elements of a sequence are dropped: the counters and the key of Philox4x32-10, and where
// the threshold lies. Element e takes word e / 16 % 4 of the draw with the counter {e / 64 * 16 +
// e % 16, counter[0], counter[1], counter[2]} and is dropped if that is below the threshold.
template <typename T>
struct DropoutDraw {
  uint32_t key[2];
  uint32_t counter[3];
  uint32_t threshold;
  T scale;  // of elements that stay
};

// A matrix as it is stored or read transposed; `stride` elements between stored rows.
template <typename T>
struct ProductOperandView {
  const T* data;
  int64_t stride;
  bool transposed;
};

// Sums of products run in order over this much of k, and these partial sums are added in order.
inline constexpr int64_t kProductDepth = 256;
// Columns of b that are packed at a time, and elements of the packed part of a.
inline constexpr int64_t kProductColumns = 512;
inline constexpr int64_t kProductLeftElements = 4 * 12 * (kProductDepth + 16);
inline constexpr int64_t kProductWorkspace = kProductDepth * kProductColumns + kProductLeftElements;

// result [m, n] = a [m, k] * b [k, n] + bias, or added to what is there. k >= 1.
template <typename T>
struct ProductCall {
  int64_t m, n, k;
  ProductOperandView<T> a, b;  // [m, k] and [k, n] after transposition
  T* result;
  int64_t result_stride;
  bool add;
  const T* bias;  // [n], or null; null where `add`
  T* workspace;   // kProductWorkspace elements
};

// Attention takes blocks of this many queries and keys; it pads widths to whole kAttentionColumns.
inline constexpr int64_t kAttentionQueries = 32;
inline constexpr int64_t kAttentionKeys = 64;
inline constexpr int64_t kAttentionColumns = 32;
// Rows of the width that `spare` holds.
inline constexpr int64_t kAttentionSpareRows = 8;

// What attention writes while it runs; forward uses half of it.
template <typename T>
struct AttentionSpace {
  T* packed;                    // context * padded width
  T *scores, *score_gradients;  // kAttentionKeys * kAttentionQueries
  // kAttentionQueries * padded width
  T *queries_transposed, *queries, *output_gradients_transposed, *output_gradients;
  T* spare;  // kAttentionSpareRows * the larger of padded width and kAttentionQueries
};

// One head of one sequence: its rows lie `stride` apart, those of the output output_stride.
template <typename T>
struct AttentionHead {
  int64_t context;
  int64_t width, padded_width;
  int64_t stride, output_stride;
  T scale;  // of scores
  const T *queries, *keys, *values;
  AttentionSpace<T> workspace;
};

// What backward of a head reads and writes besides the head itself.
template <typename T>
struct AttentionGradient {
  const T *output, *output_gradient;
  const T* lse;
  T *queries, *keys, *values;
  bool add;  // to the gradients of keys and values
};

// T is float or double. Pointers need no alignment beyond T's. Unless said otherwise an output may
// be the same memory as an input of the same length, and lengths may be zero.
template <typename T>
struct Kernels {
  // output = a + b.
  void (*add)(const T* a, const T* b, T* output, int64_t n);
  // output = factor * input.
  void (*scale)(const T* input, T factor, T* output, int64_t n);
  // The largest element, -infinity for none; ignores NaN.
  T (*max)(const T* input, int64_t n);

  void (*gelu)(const T* input, T* output, int64_t n);
  void (*gelu_backward)(const T* input, const T* output_gradient, T* input_gradient, int64_t n);

  // output = silu(gate) * up.
  void (*swiglu)(const T* gate, const T* up, T* output, int64_t n);
  void (*swiglu_backward)(const T* gate, const T* up, const T* output_gradient, T* gate_gradient,
                          T* up_gradient, int64_t n);
  // Turns the pairs (input[i], input[n + i]) by the angles whose cosines and sines are given; turn
  // is 1, or -1 for the other direction.
  void (*rotate)(const T* cosines, const T* sines, T turn, const T* input, T* output, int64_t n);
  // Elements [first, first + n) of a sequence; first is a multiple of 64.
  void (*drop)(const DropoutDraw<T>& draw, int64_t first, const T* input, T* output, int64_t n);

  // Sum of exp(input - shift), in double across stretches of 1024 elements.
  double (*sum_of_exponentials)(const T* input, T shift, int64_t n);
  // output = exp(input - shift); returns the sum as above.
  double (*exponentials)(const T* input, T shift, T* output, int64_t n);

  // Causal attention of one head of one sequence. output: rows head.output_stride apart; lse: one
  // for each row. Outputs may not be inputs.
  void (*attend)(const AttentionHead<T>& head, T* output, T* lse);
  void (*attend_backward)(const AttentionHead<T>& head, const AttentionGradient<T>& gradient);

  // width >= 1.
  RowStatistics<T> (*layer_norm)(const T* input, const T* weight, const T* bias, T epsilon,
                                 T* output, int64_t width);
  void (*layer_norm_backward)(const T* input, const T* weight, const RowStatistics<T>& statistics,
                              const T* output_gradient, T* input_gradient, int64_t width);
  // Returns 1 / the root of the mean square.
  T (*rms_norm)(const T* input, const T* weight, T epsilon, T* output, int64_t width);
  void (*rms_norm_backward)(const T* input, const T* weight, T inverse_root,
                            const T* output_gradient, T* input_gradient, int64_t width);

  // sums[c] += sum over rows of matrix(r, c): stretches of 64 rows, then the stretches in order.
  void (*add_column_sums)(const MatrixView<T>& matrix, int64_t rows, int64_t columns, T* sums);
  // sums[c] += sum over rows of gradient(r, c) * normalised input(r, c), in the same order.
  void (*add_normalized_column_sums)(const NormalizedProduct<T>& product, int64_t rows,
                                     int64_t columns, T* sums);

  // In double.
  double (*sum_of_squares)(const T* values, int64_t n);
  // No two pointers may overlap.
  void (*adamw)(const AdamWFactors<T>& factors, const T* gradient, T* weights, T* first_moment,
                T* second_moment, int64_t n);

  // Null in builds for processors without fused multiply-add; other builds give the same bits.
  void (*multiply)(const ProductCall<T>& call);
};

// One build of the kernels that this processor can run.
struct InstructionSet {
  const char* name;
  const Kernels<float>* float_kernels;
  const Kernels<double>* double_kernels;
};

// Those that this processor can run, slowest first. At most kInstructionSetsMax.
inline constexpr int kInstructionSetsMax = 3;
int SupportedInstructionSets(InstructionSet (&sets)[kInstructionSetsMax]);

// The fastest that this processor can run.
template <typename T>
const Kernels<T>& BestKernels();

template <>
const Kernels<float>& BestKernels<float>();
template <>
const Kernels<double>& BestKernels<double>();

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNELS_H_
