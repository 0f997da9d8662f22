#include <algorithm>
#include <array>

#include "base/ignored_target.h"
#include "base/status_macros.h"
#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/logarithm.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/ops/shape_check.h"
#include "compute/ops/softmax_cross_entropy.h"

namespace longhaul::compute {
namespace {

// Rows whose losses wait on the stack to be added in order.
constexpr int64_t kRowsAtOnce = 1024;

template <typename T>
double RowLoss(const T* logits, int64_t vocab, int32_t target) {
  if (target == kIgnoredTarget) return 0;
  const Kernels<T>& kernels = BestKernels<T>();
  const T largest = kernels.max(logits, vocab);
  const double sum = kernels.sum_of_exponentials(logits, largest, vocab);
  return Logarithm(sum) - (static_cast<double>(logits[target]) - static_cast<double>(largest));
}

template <typename T>
void RowGradient(const T* logits, int64_t vocab, int32_t target, T* gradient) {
  if (target == kIgnoredTarget) {
    std::fill_n(gradient, vocab, T{0});
    return;
  }
  const Kernels<T>& kernels = BestKernels<T>();
  const T largest = kernels.max(logits, vocab);
  const double sum = kernels.exponentials(logits, largest, gradient, vocab);
  kernels.scale(gradient, static_cast<T>(1 / sum), gradient, vocab);
  gradient[target] -= T{1};
}

}  // namespace

template <typename T>
absl::Status CpuKernels<T>::SoftmaxCrossEntropyForward(const SoftmaxCrossEntropyShape& shape,
                                                       absl::Span<const T> logits,
                                                       absl::Span<const int32_t> targets,
                                                       double* loss_sum) const {
  LH_RETURN_IF_ERROR(CheckIds("softmax cross-entropy", {"target", shape.vocab, kIgnoredTarget},
                              targets.data(), shape.rows));
  std::array<double, kRowsAtOnce> losses;
  double total = 0;
  for (int64_t first = 0; first < shape.rows; first += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, shape.rows - first);
    ForChunks(backend_, rows, ChunkRows(shape.vocab), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        losses[static_cast<size_t>(row)] = RowLoss(logits.data() + (first + row) * shape.pitch(),
                                                   shape.vocab, targets[first + row]);
      }
    });
    for (int64_t row = 0; row < rows; ++row) total += losses[static_cast<size_t>(row)];
  }
  *loss_sum = total;
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuKernels<T>::SoftmaxCrossEntropyBackward(const SoftmaxCrossEntropyShape& shape,
                                                        absl::Span<const T> logits,
                                                        absl::Span<const int32_t> targets,
                                                        absl::Span<T> logits_gradient) const {
  LH_RETURN_IF_ERROR(CheckIds("softmax cross-entropy backward",
                              {"target", shape.vocab, kIgnoredTarget}, targets.data(), shape.rows));
  const int64_t vocab = shape.vocab, pitch = shape.pitch();
  ForChunks(backend_, shape.rows, ChunkRows(vocab), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      RowGradient(logits.data() + row * pitch, vocab, targets[row],
                  logits_gradient.data() + row * pitch);
    }
  });
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                                 \
  template absl::Status CpuKernels<T>::SoftmaxCrossEntropyForward(                              \
      const SoftmaxCrossEntropyShape&, absl::Span<const T>, absl::Span<const int32_t>, double*) \
      const;                                                                                    \
  template absl::Status CpuKernels<T>::SoftmaxCrossEntropyBackward(                             \
      const SoftmaxCrossEntropyShape&, absl::Span<const T>, absl::Span<const int32_t>,          \
      absl::Span<T>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)

}  // namespace longhaul::compute
