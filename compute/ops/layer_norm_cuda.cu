#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/column_sums.cuh"
#include "compute/ops/layer_norm.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;  // a block for each row

template <typename T>
__global__ void LayerNormKernel(LayerNormShape shape, const T* input, const T* weight,
                                const T* bias, T* output, T* statistics) {
  const int64_t row = blockIdx.x, width = shape.width;
  const T* x = input + row * width;
  T sum = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) sum += x[i];
  const T mean = cuda::BlockReduce<kThreads>(sum, cuda::Sum{}) / static_cast<T>(width);
  T squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) squares += (x[i] - mean) * (x[i] - mean);
  const T variance = cuda::BlockReduce<kThreads>(squares, cuda::Sum{}) / static_cast<T>(width);
  const T inverse = T(1) / sqrt(variance + static_cast<T>(shape.epsilon));
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    output[row * width + i] = (x[i] - mean) * inverse * weight[i] + bias[i];
  }
  if (threadIdx.x == 0) {
    statistics[row] = mean;
    statistics[shape.rows + row] = inverse;
  }
}

template <typename T>
__global__ void LayerNormInputGradientKernel(LayerNormShape shape, const T* input, const T* weight,
                                             const T* statistics, const T* output_gradient,
                                             T* input_gradient) {
  const int64_t row = blockIdx.x, width = shape.width;
  const T* x = input + row * width;
  const T* gradient = output_gradient + row * width;
  const T mean = statistics[row], inverse = statistics[shape.rows + row];
  T sum = 0, sum_with_x = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    const T scaled = gradient[i] * weight[i];
    sum += scaled;
    sum_with_x += scaled * ((x[i] - mean) * inverse);
  }
  sum = cuda::BlockReduce<kThreads>(sum, cuda::Sum{}) / static_cast<T>(width);
  sum_with_x = cuda::BlockReduce<kThreads>(sum_with_x, cuda::Sum{}) / static_cast<T>(width);
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    const T normalised = (x[i] - mean) * inverse;
    input_gradient[row * width + i] =
        inverse * (gradient[i] * weight[i] - sum - normalised * sum_with_x);
  }
}

template <typename T>
struct WeightGradientAt {
  LayerNormShape shape;
  const T* input;
  const T* statistics;
  const T* output_gradient;
  __device__ T operator()(int64_t row, int64_t column) const {
    const int64_t at = row * shape.width + column;
    return output_gradient[at] * ((input[at] - statistics[row]) * statistics[shape.rows + row]);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::LayerNormForward(const LayerNormShape& shape,
                                              absl::Span<const T> input, absl::Span<const T> weight,
                                              absl::Span<const T> bias, absl::Span<T> output,
                                              absl::Span<Wide<T>> statistics) const {
  return cuda::Launch(backend_, "layer norm", {static_cast<unsigned>(shape.rows), kThreads},
                      LayerNormKernel<T>, shape, input.data(), weight.data(), bias.data(),
                      output.data(), statistics.data());
}

// The parameters' gradients first: the input's may be written over the output's.
template <typename T>
absl::Status CudaKernels<T>::LayerNormBackward(
    const LayerNormShape& shape, absl::Span<const T> input, absl::Span<const T> weight,
    absl::Span<const Wide<T>> statistics, absl::Span<const T> output_gradient,
    absl::Span<T> input_gradient, absl::Span<Wide<T>> weight_gradient,
    absl::Span<Wide<T>> bias_gradient) const {
  constexpr const char* kOp = "layer norm backward";
  LH_RETURN_IF_ERROR(cuda::AddColumnSums(
      backend_, kOp, shape.rows, shape.width,
      WeightGradientAt<T>{shape, input.data(), statistics.data(), output_gradient.data()},
      weight_gradient.data()));
  LH_RETURN_IF_ERROR(cuda::AddColumnSums(backend_, kOp, shape.rows, shape.width,
                                         cuda::MatrixAt<T>{shape.width, output_gradient.data()},
                                         bias_gradient.data()));
  return cuda::Launch(backend_, kOp, {static_cast<unsigned>(shape.rows), kThreads},
                      LayerNormInputGradientKernel<T>, shape, input.data(), weight.data(),
                      statistics.data(), output_gradient.data(), input_gradient.data());
}

#define LONGHAUL_INSTANTIATE(T)                                                                   \
  template absl::Status CudaKernels<T>::LayerNormForward(                                         \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const T>,       \
      absl::Span<T>, absl::Span<Wide<T>>) const;                                                  \
  template absl::Status CudaKernels<T>::LayerNormBackward(                                        \
      const LayerNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>, \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
