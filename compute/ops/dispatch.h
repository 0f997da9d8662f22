// Where an operator goes from its checks to the kernels of the backend's kind.
#ifndef LONGHAUL_COMPUTE_OPS_DISPATCH_H_
#define LONGHAUL_COMPUTE_OPS_DISPATCH_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// Runs `cpu`, which returns a Status or nothing, if the backend is the CPU. A build without CUDA
// has no other kernels: Unimplemented. `op` names the operator.
template <typename CpuKernels>
absl::Status Dispatch(const Backend& backend, absl::string_view op, const CpuKernels& cpu) {
  switch (backend.kind()) {
    case DeviceKind::kCpu:
      if constexpr (std::is_void_v<decltype(cpu())>) {
        cpu();
        return absl::OkStatus();
      } else {
        return cpu();
      }
    case DeviceKind::kCuda:
      break;
  }
  return absl::UnimplementedError(
      absl::StrCat(op,
                   ": this build has kernels for the CPU only; use a CPU device, or a build "
                   "with CUDA"));
}

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_DISPATCH_H_
