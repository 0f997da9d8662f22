// A stage's tensors in host memory, for files.
#ifndef LONGHAUL_WORKER_HOST_HOST_COPIES_H_
#define LONGHAUL_WORKER_HOST_HOST_COPIES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"

namespace longhaul::worker {

// Where the device's memory is the host's, the tensors themselves; else copies of them, which live
// as long as the object. The backend's thread.
class HostCopies {
 public:
  explicit HostCopies(compute::Backend& backend) : backend_(backend) {}

  // The tensor's memory on the host; of a copy, undefined until Read.
  absl::Span<float> Of(absl::Span<float> tensor) {
    if (backend_.kind() == compute::DeviceKind::kCpu) return tensor;
    copies_.push_back({tensor, std::make_unique_for_overwrite<float[]>(tensor.size())});
    return absl::MakeSpan(copies_.back().host.get(), tensor.size());
  }

  // Device to host, all that Of was asked for.
  absl::Status Read() {
    // A copy to memory that is not pinned waits for the device, without a deadline of its own.
    if (const absl::Status status = backend_.Synchronize(); !status.ok()) return status;
    for (const Copied& copy : copies_) {
      const absl::Status status = backend_.CopyToHost(copy.host.get(), copy.tensor.data(),
                                                      copy.tensor.size() * sizeof(float));
      if (!status.ok()) return status;
    }
    return backend_.Synchronize();
  }
  // Host to device.
  absl::Status Write() {
    for (const Copied& copy : copies_) {
      const absl::Status status = backend_.CopyToDevice(copy.tensor.data(), copy.host.get(),
                                                        copy.tensor.size() * sizeof(float));
      if (!status.ok()) return status;
    }
    return backend_.Synchronize();
  }

 private:
  struct Copied {
    absl::Span<float> tensor;
    std::unique_ptr<float[]> host;
  };
  compute::Backend& backend_;
  std::vector<Copied> copies_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_HOST_HOST_COPIES_H_
