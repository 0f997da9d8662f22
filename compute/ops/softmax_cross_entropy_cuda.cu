#include <cmath>

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/total.cuh"
#include "compute/ops/softmax_cross_entropy.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;  // a block for each row

template <typename T>
__device__ T LargestOf(const T* logits, int64_t vocab) {
  T largest = logits[0];
  for (int64_t i = threadIdx.x; i < vocab; i += kThreads) largest = cuda::Max{}(largest, logits[i]);
  return cuda::BlockReduce<kThreads>(largest, cuda::Max{});
}

template <typename T>
__device__ double SumOfExponentials(const T* logits, int64_t vocab, T largest) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < vocab; i += kThreads) sum += exp(logits[i] - largest);
  return cuda::BlockReduce<kThreads>(sum, cuda::Sum{});
}

template <typename T>
__global__ void RowLossesKernel(int64_t vocab, const T* logits, const int32_t* targets,
                                double* losses) {
  const int64_t row = blockIdx.x;
  const T* of_row = logits + row * vocab;
  const int32_t target = targets[row];
  if (target == kIgnoredTarget) {  // for the whole block
    if (threadIdx.x == 0) losses[row] = 0;
    return;
  }
  const T largest = LargestOf(of_row, vocab);
  const double sum = SumOfExponentials(of_row, vocab, largest);
  if (threadIdx.x == 0) {
    losses[row] = log(sum) - (static_cast<double>(of_row[target]) - static_cast<double>(largest));
  }
}

template <typename T>
__global__ void LogitsGradientKernel(int64_t vocab, const T* logits, const int32_t* targets,
                                     T* logits_gradient) {
  const int64_t row = blockIdx.x;
  const T* of_row = logits + row * vocab;
  T* gradient = logits_gradient + row * vocab;  // may be of_row
  const int32_t target = targets[row];
  if (target == kIgnoredTarget) {  // for the whole block
    for (int64_t i = threadIdx.x; i < vocab; i += kThreads) gradient[i] = 0;
    return;
  }
  const T largest = LargestOf(of_row, vocab);
  const T scale = static_cast<T>(1 / SumOfExponentials(of_row, vocab, largest));
  for (int64_t i = threadIdx.x; i < vocab; i += kThreads) {
    gradient[i] = exp(of_row[i] - largest) * scale - (i == target ? T(1) : T(0));
  }
}

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::SoftmaxCrossEntropyForward(const SoftmaxCrossEntropyShape& shape,
                                                        absl::Span<const T> logits,
                                                        absl::Span<const int32_t> targets,
                                                        double* loss_sum) const {
  constexpr const char* kOp = "softmax cross-entropy";
  LH_ASSIGN_OR_RETURN(double* const scratch,
                      backend_.template ScratchOf<double>(cuda::ScratchOfTotal() + shape.rows));
  double* const losses = scratch + cuda::ScratchOfTotal();
  LH_RETURN_IF_ERROR(cuda::Launch(backend_, kOp, {static_cast<unsigned>(shape.rows), kThreads},
                                  RowLossesKernel<T>, shape.vocab, logits.data(), targets.data(),
                                  losses));
  return cuda::Total(backend_, kOp, shape.rows, cuda::TermsAt{losses}, scratch, loss_sum);
}

template <typename T>
absl::Status CudaKernels<T>::SoftmaxCrossEntropyBackward(const SoftmaxCrossEntropyShape& shape,
                                                         absl::Span<const T> logits,
                                                         absl::Span<const int32_t> targets,
                                                         absl::Span<T> logits_gradient) const {
  return cuda::Launch(backend_, "softmax cross-entropy backward",
                      {static_cast<unsigned>(shape.rows), kThreads}, LogitsGradientKernel<T>,
                      shape.vocab, logits.data(), targets.data(), logits_gradient.data());
}

#define LONGHAUL_INSTANTIATE(T)                                                                 \
  template absl::Status CudaKernels<T>::SoftmaxCrossEntropyForward(                             \
      const SoftmaxCrossEntropyShape&, absl::Span<const T>, absl::Span<const int32_t>, double*) \
      const;                                                                                    \
  template absl::Status CudaKernels<T>::SoftmaxCrossEntropyBackward(                            \
      const SoftmaxCrossEntropyShape&, absl::Span<const T>, absl::Span<const int32_t>,          \
      absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
