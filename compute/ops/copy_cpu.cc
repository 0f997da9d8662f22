#include "compute/ops/copy_cpu.h"

#include <algorithm>

#include "compute/backend/cpu/chunks.h"

namespace longhaul::compute::cpu {

template <typename T>
void Copy(Backend& backend, absl::Span<const T> input, absl::Span<T> output) {
  ForChunks(backend, static_cast<int64_t>(output.size()), kChunkElements,
            [&](int64_t begin, int64_t end) {
              std::copy(input.begin() + begin, input.begin() + end, output.begin() + begin);
            });
}

template void Copy<float>(Backend&, absl::Span<const float>, absl::Span<float>);
template void Copy<double>(Backend&, absl::Span<const double>, absl::Span<double>);

}  // namespace longhaul::compute::cpu
