// One replica's communicator of NCCL, from before the replicas have met to its end.
#ifndef LONGHAUL_WORKER_COMM_NCCL_COMMUNICATOR_H_
#define LONGHAUL_WORKER_COMM_NCCL_COMMUNICATOR_H_

#include <cuda_runtime.h>
#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/comm/nccl_library.h"

namespace longhaul::worker {

struct NcclPlace {
  int device = 0;  // as CUDA counts them
  int rank = 0;
  std::vector<std::string> names;  // of each rank's replica
};

// Owns a communicator and a stream. Operations are never waited for inside NCCL: the communicator
// is a non-blocking one, whose state is looked at until it is done, a deadline has passed, or
// Cancel was called. Only its end joins NCCL's own threads. After any of the latter two, or an
// error, the communicator is aborted, which ends what is under way on the device, and every later
// call returns the first reason. One call of Meet and Run at a time, on any thread; Cancel from
// any.
class NcclCommunicator {
 public:
  // `clock` must outlive the object.
  NcclCommunicator(const NcclLibrary& nccl, NcclPlace place, Clock& clock);
  ~NcclCommunicator() { End(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return static_cast<int>(place_.names.size()); }

  // Once, before Run: waits for the others, who call it with the same id.
  absl::Status Meet(const ncclUniqueId& id, absl::Time deadline);

  using Launch = absl::FunctionRef<ncclResult_t(ncclComm_t, cudaStream_t)>;
  // Queues one operation on the stream by `launch` and waits until it has run. `what` is for
  // messages: "the sum of 17 values".
  absl::Status Run(absl::string_view what, Launch launch, absl::Time deadline);
  // A copy on the stream, before or after an operation; returns when it has run.
  absl::Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                    absl::Time deadline);

  // Waits a moment for what the peers still need of this one; then it is aborted. False if it was
  // aborted, now or before: the device may hang. No call after it.
  bool End();

  void Cancel(const absl::Status& reason);

 private:
  // kCopy: as kStateAndStream, but a card that has not done it at the deadline hangs.
  enum class Wait { kState, kStateAndStream, kCopy };

  absl::Status Begin();  // the first reason, if there is one
  absl::Status Perform(absl::string_view what, Wait wait, absl::FunctionRef<ncclResult_t()> call,
                       absl::Time deadline);
  absl::StatusOr<bool> Done(absl::string_view what, Wait wait);
  absl::Status Await(absl::string_view what, Wait wait, absl::Time deadline);
  // Keeps the first reason, aborts, and returns that reason.
  absl::Status GiveUp(const absl::Status& status);
  void Abort();
  absl::Status NcclError(absl::string_view what, ncclResult_t result) const;
  absl::Status Late(absl::string_view what) const;
  absl::Status Hangs() const;
  std::string Others() const;

  const NcclLibrary nccl_;
  const NcclPlace place_;
  Clock& clock_;
  ncclComm_t meeting_ = nullptr;  // NCCL may write it until the replicas have met
  ncclComm_t comm_ = nullptr;     // null: not yet, or ended
  cudaStream_t stream_ = nullptr;
  // The card does: communicator and stream stay until the process ends, since their ends wait for
  // it.
  bool hangs_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Status ended_;  // guarded by mutex_: the first reason
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_NCCL_COMMUNICATOR_H_
