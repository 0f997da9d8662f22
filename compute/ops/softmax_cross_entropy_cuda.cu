#include <cmath>

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/fast_math.cuh"
#include "compute/backend/cuda/pack.cuh"
#include "compute/backend/cuda/total.cuh"
#include "compute/ops/softmax_cross_entropy.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;  // a block for each row

// The row's packs begin where 16 bytes begin, up to a pack before the row: body(at, values), with
// -infinity in place of what is not of the row.
template <typename T, typename Body>
__device__ void ForPacks(const T* row, int64_t vocab, const Body& body) {
  constexpr int kCount = cuda::kPack<T>;
  const int64_t before =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % kCount);
  for (int64_t at = threadIdx.x * kCount - before; at < vocab; at += kThreads * kCount) {
    Wide<T> values[kCount];
    cuda::Load(row, at, vocab, values, -static_cast<Wide<T>>(INFINITY));
    body(at, values);
  }
}

// The largest of some logits and the sum of exp(logit - largest).
template <typename W>
struct SoftmaxSums {
  W largest;
  double sum;
};

// Of a row, the same in every thread, from one look at it (Milakov and Gimelshein 2018, algorithm
// 3).
template <typename T>
__device__ SoftmaxSums<Wide<T>> SumsOf(const T* row, int64_t vocab) {
  using W = Wide<T>;
  W largest = -static_cast<W>(INFINITY), sum = 0;
  ForPacks(row, vocab, [&](int64_t, const W(&values)[cuda::kPack<T>]) {
    W now = largest;
    LONGHAUL_UNROLL
    for (int k = 0; k < cuda::kPack<T>; ++k) now = cuda::Max{}(now, values[k]);
    if (now != largest) sum *= cuda::Exp<T>(largest - now);
    largest = now;
    if (now == -static_cast<W>(INFINITY)) return;
    LONGHAUL_UNROLL
    for (int k = 0; k < cuda::kPack<T>; ++k) sum += cuda::Exp<T>(values[k] - now);
  });
  const W all = cuda::BlockReduce<kThreads>(largest, cuda::Max{});
  const double scaled = largest == all ? double{sum} : double{sum} * exp(double{largest - all});
  return {all, cuda::BlockReduce<kThreads>(scaled, cuda::Sum{})};
}

template <typename T>
__global__ void RowLossesKernel(int64_t vocab, int64_t pitch, const T* logits,
                                const int32_t* targets, double* losses) {
  const int64_t row = blockIdx.x;
  const T* of_row = logits + row * pitch;
  const int32_t target = targets[row];
  if (target == kIgnoredTarget) {  // for the whole block
    if (threadIdx.x == 0) losses[row] = 0;
    return;
  }
  const auto [largest, sum] = SumsOf(of_row, vocab);
  if (threadIdx.x == 0) {
    losses[row] = log(sum) - (static_cast<double>(of_row[target]) - static_cast<double>(largest));
  }
}

template <typename T>
__global__ void LogitsGradientKernel(int64_t vocab, int64_t pitch, const T* logits,
                                     const int32_t* targets, T* logits_gradient) {
  using W = Wide<T>;
  const int64_t row = blockIdx.x;
  const T* of_row = logits + row * pitch;
  T* gradient = logits_gradient + row * pitch;  // may be of_row
  const int32_t target = targets[row];
  const bool ignored = target == kIgnoredTarget;  // for the whole block
  const SoftmaxSums<W> sums = ignored ? SoftmaxSums<W>{0, 1} : SumsOf(of_row, vocab);
  const W scale = static_cast<W>(1 / sums.sum);
  ForPacks(of_row, vocab, [&](int64_t at, W(&values)[cuda::kPack<T>]) {
    LONGHAUL_UNROLL
    for (int k = 0; k < cuda::kPack<T>; ++k) {
      const W probability = cuda::Exp<T>(values[k] - sums.largest) * scale;
      values[k] = ignored ? W(0) : probability - (at + k == target ? W(1) : W(0));
    }
    cuda::Store(values, gradient, at, vocab);
  });
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
                                  RowLossesKernel<T>, shape.vocab, shape.pitch(), logits.data(),
                                  targets.data(), losses));
  return cuda::Total(backend_, kOp, shape.rows, cuda::TermsAt{losses}, scratch, loss_sum);
}

template <typename T>
absl::Status CudaKernels<T>::SoftmaxCrossEntropyBackward(const SoftmaxCrossEntropyShape& shape,
                                                         absl::Span<const T> logits,
                                                         absl::Span<const int32_t> targets,
                                                         absl::Span<T> logits_gradient) const {
  return cuda::Launch(backend_, "softmax cross-entropy backward",
                      {static_cast<unsigned>(shape.rows), kThreads}, LogitsGradientKernel<T>,
                      shape.vocab, shape.pitch(), logits.data(), targets.data(),
                      logits_gradient.data());
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
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
