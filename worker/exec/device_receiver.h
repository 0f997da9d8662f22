// The way in: from the exchange to a device's memory.
#ifndef LONGHAUL_WORKER_EXEC_DEVICE_RECEIVER_H_
#define LONGHAUL_WORKER_EXEC_DEVICE_RECEIVER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "compute/backend/backend.h"
#include "worker/comm/exchange.h"
#include "worker/exec/device_links.h"

namespace longhaul::worker {

// Copies on a stream of its own and decodes on the compute stream. For the backend's thread.
class DeviceReceiver {
 public:
  // Everything outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceReceiver>> Make(compute::Backend& backend,
                                                              Exchange& exchange,
                                                              const DeviceLinks& links,
                                                              Clock& clock);

  // As TensorPort::Receive. Waits for the frame, and while all buffers are under way.
  absl::Status Receive(const DeviceLink& link, const FrameKey& key,
                       const compute::DeviceSpan& values, absl::Time deadline);
  // Queues that Check knows, once the backend is synchronised, of all that was received before.
  absl::Status PrepareCheck();
  // DataLoss, which names the peer and the codec, if something was no encoding.
  absl::Status Check() const;

 private:
  struct InBuffer : StagingBuffer {
    std::unique_ptr<compute::Mark> copied;   // from pinned memory; null: never used
    std::unique_ptr<compute::Mark> decoded;  // out of device memory
  };

  DeviceReceiver(compute::Backend& backend, Exchange& exchange, const DeviceLinks& links,
                 Clock& clock)
      : backend_(backend), exchange_(exchange), links_(links), clock_(clock) {}
  // The next buffer, once its pinned memory is free.
  absl::StatusOr<InBuffer*> TakeBuffer(const FrameKey& key, absl::Time deadline);
  // Fills the buffer's pinned memory with `bytes` bytes of the frame.
  absl::Status Fill(InBuffer& buffer, const DeviceLink& link, const FrameKey& key,
                    uint64_t elements, absl::Time deadline);
  absl::Status QueueTied(InBuffer& buffer, const compute::DeviceSpan& values);
  absl::Status QueueDecoding(InBuffer& buffer, const DeviceLink& link,
                             const compute::DeviceSpan& values);

  compute::Backend& backend_;
  Exchange& exchange_;
  const DeviceLinks& links_;
  Clock& clock_;
  std::unique_ptr<compute::CopyStream> copies_;
  std::vector<InBuffer> buffers_;
  size_t next_ = 0;
  // A word for each link, by its index: what DeviceCodec::Decode notes; on the device and as read.
  std::unique_ptr<compute::Buffer> damaged_, damaged_read_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_DEVICE_RECEIVER_H_
