#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/column_sums.cuh"
#include "compute/ops/rms_norm.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;  // a block for each row

template <typename T>
__global__ void RmsNormKernel(RmsNormShape shape, const T* input, const T* weight, T* output,
                              T* statistics) {
  const int64_t row = blockIdx.x, width = shape.width;
  const T* x = input + row * width;
  T squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) squares += x[i] * x[i];
  const T mean = cuda::BlockReduce<kThreads>(squares, cuda::Sum{}) / static_cast<T>(width);
  const T inverse = T(1) / sqrt(mean + static_cast<T>(shape.epsilon));
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    output[row * width + i] = x[i] * inverse * weight[i];
  }
  if (threadIdx.x == 0) statistics[row] = inverse;
}

template <typename T>
__global__ void RmsNormInputGradientKernel(RmsNormShape shape, const T* input, const T* weight,
                                           const T* statistics, const T* output_gradient,
                                           T* input_gradient) {
  const int64_t row = blockIdx.x, width = shape.width;
  const T* x = input + row * width;
  const T* gradient = output_gradient + row * width;
  const T inverse = statistics[row];
  T sum = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    sum += gradient[i] * weight[i] * (x[i] * inverse);
  }
  sum = cuda::BlockReduce<kThreads>(sum, cuda::Sum{}) / static_cast<T>(width);
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    input_gradient[row * width + i] = inverse * (gradient[i] * weight[i] - x[i] * inverse * sum);
  }
}

template <typename T>
struct WeightGradientAt {
  int64_t width;
  const T* input;
  const T* statistics;
  const T* output_gradient;
  __device__ T operator()(int64_t row, int64_t column) const {
    const int64_t at = row * width + column;
    return output_gradient[at] * (input[at] * statistics[row]);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::RmsNormForward(const RmsNormShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> weight, absl::Span<T> output,
                                            absl::Span<Wide<T>> statistics) const {
  return cuda::Launch(backend_, "rms norm", {static_cast<unsigned>(shape.rows), kThreads},
                      RmsNormKernel<T>, shape, input.data(), weight.data(), output.data(),
                      statistics.data());
}

// The weight's gradient first: the input's may be written over the output's.
template <typename T>
absl::Status CudaKernels<T>::RmsNormBackward(const RmsNormShape& shape, absl::Span<const T> input,
                                             absl::Span<const T> weight,
                                             absl::Span<const Wide<T>> statistics,
                                             absl::Span<const T> output_gradient,
                                             absl::Span<T> input_gradient,
                                             absl::Span<Wide<T>> weight_gradient) const {
  constexpr const char* kOp = "rms norm backward";
  LH_RETURN_IF_ERROR(cuda::AddColumnSums(
      backend_, kOp, shape.rows, shape.width,
      WeightGradientAt<T>{shape.width, input.data(), statistics.data(), output_gradient.data()},
      weight_gradient.data()));
  return cuda::Launch(backend_, kOp, {static_cast<unsigned>(shape.rows), kThreads},
                      RmsNormInputGradientKernel<T>, shape, input.data(), weight.data(),
                      statistics.data(), output_gradient.data(), input_gradient.data());
}

#define LONGHAUL_INSTANTIATE(T)                                                                  \
  template absl::Status CudaKernels<T>::RmsNormForward(const RmsNormShape&, absl::Span<const T>, \
                                                       absl::Span<const T>, absl::Span<T>,       \
                                                       absl::Span<Wide<T>>) const;               \
  template absl::Status CudaKernels<T>::RmsNormBackward(                                         \
      const RmsNormShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const Wide<T>>,  \
      absl::Span<const T>, absl::Span<T>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
