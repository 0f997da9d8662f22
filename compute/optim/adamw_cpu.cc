#include "base/status_macros.h"
#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/cpu_kernels.h"
#include "compute/backend/cpu/simd/kernels.h"
#include "compute/optim/adamw.h"
#include "compute/optim/adamw_factors.h"

namespace longhaul::compute {

template <typename T>
absl::Status CpuKernels<T>::AdamW(const AdamWStep& step,
                                  absl::Span<const AdamWTensor<T>> tensors) const {
  AdamWStep undecayed = step;
  undecayed.weight_decay = 0;
  const AdamWFactors<T> decaying = FactorsOf<T>(step), constant = FactorsOf<T>(undecayed);
  const Kernels<T>& kernels = BestKernels<T>();
  for (const AdamWTensor<T>& tensor : tensors) {
    const AdamWFactors<T>& factors = tensor.decays ? decaying : constant;
    ForChunks(backend_, static_cast<int64_t>(tensor.weights.size()), kChunkElements,
              [&](int64_t begin, int64_t end) {
                kernels.adamw(factors, tensor.gradient.data() + begin,
                              tensor.weights.data() + begin, tensor.first_moment.data() + begin,
                              tensor.second_moment.data() + begin, end - begin);
              });
    if (!tensor.working.empty()) LH_RETURN_IF_ERROR(Round(tensor.weights, tensor.working));
  }
  return absl::OkStatus();
}

template absl::Status CpuKernels<float>::AdamW(const AdamWStep&,
                                               absl::Span<const AdamWTensor<float>>) const;
template absl::Status CpuKernels<double>::AdamW(const AdamWStep&,
                                                absl::Span<const AdamWTensor<double>>) const;

}  // namespace longhaul::compute
