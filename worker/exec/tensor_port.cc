#include "worker/exec/tensor_port.h"

namespace longhaul::worker {

absl::StatusOr<std::unique_ptr<TensorPort>> MakeTensorPort(compute::Backend& backend,
                                                           Exchange* exchange,
                                                           absl::Span<const LinkOptions> links,
                                                           Clock& clock) {
  if (backend.kind() == compute::DeviceKind::kCpu || exchange == nullptr) {
    return MakeHostTensorPort(backend, exchange);
  }
  return MakeDeviceTensorPort(backend, *exchange, links, clock);
}

}  // namespace longhaul::worker
