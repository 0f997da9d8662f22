// The way out: from a device's memory to the exchange.
#ifndef LONGHAUL_WORKER_EXEC_DEVICE_SENDER_H_
#define LONGHAUL_WORKER_EXEC_DEVICE_SENDER_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/ids.h"
#include "compute/backend/backend.h"
#include "worker/comm/exchange.h"
#include "worker/exec/device_links.h"

namespace longhaul::worker {

// Encodes on the compute stream, copies on a stream of its own, and hands over on a thread of its
// own, in the order of the calls. Send and Finish are for the backend's thread.
class DeviceSender {
 public:
  // Everything outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceSender>> Make(compute::Backend& backend,
                                                            Exchange& exchange,
                                                            const DeviceLinks& links, Clock& clock);
  // Waits for what the device still copies. Cancels the exchange if a tensor is not handed over.
  ~DeviceSender();

  // As TensorPort::Send. Waits while all buffers are under way.
  absl::Status Send(const DeviceLink& link, const FrameKey& key, const compute::DeviceSpan& values,
                    absl::Time deadline);
  // Waits until all are handed over; the first error.
  absl::Status Finish(absl::Time deadline);

 private:
  struct OutBuffer : StagingBuffer {
    bool busy = false;  // guarded by mutex_; while it is, the rest belongs to who handles it
    std::unique_ptr<compute::Mark> copied;
  };
  struct Job {
    const DeviceLink* link = nullptr;
    FrameKey key;
    uint64_t elements = 0;
    size_t bytes = 0;
    absl::Time deadline;
    OutBuffer* buffer = nullptr;
  };

  DeviceSender(compute::Backend& backend, Exchange& exchange, Clock& clock,
               std::unique_ptr<compute::CopyStream> copies, std::vector<StagingBuffer> staging);
  absl::StatusOr<OutBuffer*> TakeBuffer(const DeviceLink& link, const FrameKey& key,
                                        absl::Time deadline);
  // Queues encoding and copy; the copy's mark.
  absl::StatusOr<std::unique_ptr<compute::Mark>> Queue(const Job& job,
                                                       const compute::DeviceSpan& values);
  void Run();
  absl::Status HandOver(const Job& job);

  compute::Backend& backend_;
  Exchange& exchange_;
  Clock& clock_;
  const std::unique_ptr<compute::CopyStream> copies_;
  std::vector<OutBuffer> buffers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_, as all below; the first is in work
  absl::Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_DEVICE_SENDER_H_
