// How the tensors of each link cross between a device and the host.
#ifndef LONGHAUL_WORKER_EXEC_DEVICE_LINKS_H_
#define LONGHAUL_WORKER_EXEC_DEVICE_LINKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/ids.h"
#include "compute/backend/backend.h"
#include "compute/codec/device_codec.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

struct DeviceLink {
  LinkOptions options;
  compute::DeviceCodec codec;  // that the device encodes activations and gradients with
  // The link's codec has no form on devices: values cross as floats and the host encodes them.
  bool host_encodes = false;
  size_t index = 0;  // among the links
};

// Tied tensors are as large as a vocabulary and travel once a step: they cross as they are, without
// a second copy on the device, and the operators wait for it.
inline bool IsTied(FrameKind kind) {
  return kind == FrameKind::kTiedGradient || kind == FrameKind::kTiedSum;
}

// One tensor on its way.
struct StagingBuffer {
  bool tied = false;
  std::unique_ptr<compute::Buffer> device;  // null if tied
  std::unique_ptr<compute::Buffer> pinned;
};

// Immutable.
class DeviceLinks {
 public:
  // InvalidArgument for a codec that this build does not know. `backend` must outlive it.
  static absl::StatusOr<DeviceLinks> Make(compute::Backend& backend,
                                          absl::Span<const LinkOptions> links);

  // InvalidArgument if there is none.
  absl::StatusOr<const DeviceLink*> Find(int peer_group) const;
  const std::map<int, DeviceLink>& all() const { return links_; }  // by peer group

  // Those of one direction, all links together: as many as the windows allow and a device can keep
  // under way, and one for tied tensors where there are any.
  absl::StatusOr<std::vector<StagingBuffer>> AllocateStaging() const;

 private:
  explicit DeviceLinks(compute::Backend& backend) : backend_(&backend) {}

  compute::Backend* backend_;
  std::map<int, DeviceLink> links_;
  int buffers_ = 0;
  size_t tensor_bytes_max_ = 0, tied_bytes_max_ = 0;
};

// The end of a wait for the device, which never takes long by itself.
inline absl::Time DeviceDeadline(Clock& clock, absl::Time deadline) {
  return std::min(deadline, clock.Now() + compute::kDeviceWaitMax);
}

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_DEVICE_LINKS_H_
