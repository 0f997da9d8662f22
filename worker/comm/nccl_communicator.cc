#include "worker/comm/nccl_communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::worker {
namespace {

using compute::CudaStatus;

// An operation that has taken t is looked at again after an eighth of t, within these bounds: a sum
// ends at most that much late, and a long wait costs no processor.
constexpr int kPollPart = 8;
constexpr absl::Duration kPollMin = absl::Microseconds(20);
constexpr absl::Duration kPollMax = absl::Milliseconds(2);

// Of the end of a communicator whose operations have all run: longer only if a peer hangs.
constexpr absl::Duration kFinalizeMax = absl::Seconds(2);

// Others that a message names.
constexpr int kNamesMax = 4;

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclLibrary& nccl, NcclPlace place, Clock& clock)
    : nccl_(nccl), place_(std::move(place)), clock_(clock) {
  LH_CHECK(rank() >= 0 && rank() < size(), "replica ", rank(), " of ", size());
}

bool NcclCommunicator::End() {
  absl::Status status = Begin();
  if (status.ok() && comm_ != nullptr) {
    status = Perform(
        "the end of the sums", Wait::kState, [this] { return nccl_.comm_finalize(comm_); },
        clock_.Now() + kFinalizeMax);
  }
  if (status.ok() && comm_ != nullptr) nccl_.comm_destroy(std::exchange(comm_, nullptr));
  if (stream_ != nullptr && !hangs_) cudaStreamDestroy(std::exchange(stream_, nullptr));
  return status.ok();
}

absl::Status NcclCommunicator::Meet(const ncclUniqueId& id, absl::Time deadline) {
  LH_CHECK(comm_ == nullptr && stream_ == nullptr, "replica ", rank(), " has met the others");
  LH_RETURN_IF_ERROR(Begin());
  LH_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                absl::StrCat(place_.names[rank()], ": a stream for NCCL")));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return Perform(
      "the meeting of the replicas", Wait::kState,
      [&] {
        const ncclResult_t result =
            nccl_.comm_init_rank_config(&meeting_, size(), id, rank(), &config);
        comm_ = meeting_;
        return result;
      },
      deadline);
}

absl::Status NcclCommunicator::Run(absl::string_view what, Launch launch, absl::Time deadline) {
  LH_RETURN_IF_ERROR(Begin());
  LH_CHECK(comm_ != nullptr, "replica ", rank(), " has not met the others");
  return Perform(
      what, Wait::kStateAndStream, [&] { return launch(comm_, stream_); }, deadline);
}

absl::Status NcclCommunicator::Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                    absl::Time deadline) {
  constexpr absl::string_view kWhat = "a copy beside NCCL";
  LH_RETURN_IF_ERROR(Begin());
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, stream_);
  if (error != cudaSuccess) {
    return GiveUp(CudaStatus(error, absl::StrCat(place_.names[rank()], ": ", kWhat)));
  }
  // The peers have no part in it, so a card that takes longer hangs.
  const absl::Time end = clock_.Now() + compute::kDeviceWaitMax;
  return end <= deadline ? Await(kWhat, Wait::kCopy, end)
                         : Await(kWhat, Wait::kStateAndStream, deadline);
}

void NcclCommunicator::Cancel(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_.ok()) return;
  ended_ = OwnCopy(reason);
  changed_.notify_all();
}

absl::Status NcclCommunicator::Begin() {
  absl::Status reason;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reason = OwnCopy(ended_);
  }
  if (!reason.ok()) {
    Abort();
    return reason;
  }
  // The calling thread's current device is a communicator's and a stream's.
  const absl::Status status = CudaStatus(cudaSetDevice(place_.device), place_.names[rank()]);
  return status.ok() ? status : GiveUp(status);
}

absl::Status NcclCommunicator::Perform(absl::string_view what, Wait wait,
                                       absl::FunctionRef<ncclResult_t()> call,
                                       absl::Time deadline) {
  const ncclResult_t result = call();
  if (result != ncclSuccess && result != ncclInProgress) return GiveUp(NcclError(what, result));
  return Await(what, wait, deadline);
}

absl::StatusOr<bool> NcclCommunicator::Done(absl::string_view what, Wait wait) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = nccl_.comm_get_async_error(comm_, &state);
  if (result != ncclSuccess) return NcclError(what, result);
  if (state == ncclInProgress) return false;
  if (state != ncclSuccess) return NcclError(what, state);
  if (wait == Wait::kState) return true;
  const cudaError_t error = cudaStreamQuery(stream_);
  if (error == cudaSuccess) return true;
  if (error == cudaErrorNotReady) return false;
  return CudaStatus(error, absl::StrCat(place_.names[rank()], ": ", what, " over NCCL"));
}

absl::Status NcclCommunicator::Await(absl::string_view what, Wait wait, absl::Time deadline) {
  const absl::Time start = clock_.Now();
  while (true) {
    const absl::StatusOr<bool> done = Done(what, wait);
    if (!done.ok()) return GiveUp(done.status());
    if (*done) return absl::OkStatus();
    const absl::Time now = clock_.Now();
    if (now >= deadline) {
      hangs_ = wait == Wait::kCopy;
      return GiveUp(hangs_ ? Hangs() : Late(what));
    }
    const absl::Duration pause = std::clamp((now - start) / kPollPart, kPollMin, kPollMax);
    std::unique_lock<std::mutex> lock(mutex_);
    if (clock_.WaitUntil(lock, changed_, std::min(deadline, now + pause),
                         [this] { return !ended_.ok(); })) {
      lock.unlock();
      return GiveUp(absl::CancelledError(""));
    }
  }
}

absl::Status NcclCommunicator::GiveUp(const absl::Status& status) {
  absl::Status first;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_.ok()) ended_ = OwnCopy(status);
    first = OwnCopy(ended_);
  }
  Abort();
  return first;
}

void NcclCommunicator::Abort() {
  if (comm_ == nullptr || hangs_) return;
  cudaSetDevice(place_.device);
  // It joins NCCL's own threads, which see the abort, and frees what it can whatever it says.
  nccl_.comm_abort(std::exchange(comm_, nullptr));
}

absl::Status NcclCommunicator::NcclError(absl::string_view what, ncclResult_t result) const {
  std::string text = absl::StrCat(place_.names[rank()], ": ", what, " with ", Others(),
                                  " over NCCL: ", nccl_.get_error_string(result));
  // May be of an earlier call: NCCL keeps one text.
  const char* const last = nccl_.get_last_error(comm_);
  if (last != nullptr && *last != '\0') absl::StrAppend(&text, " (", last, ")");
  return absl::UnavailableError(text);
}

absl::Status NcclCommunicator::Late(absl::string_view what) const {
  return absl::DeadlineExceededError(absl::StrCat(place_.names[rank()], ": ", what,
                                                  " over NCCL: ", Others(),
                                                  " did not come in time, or not all of them"));
}

absl::Status NcclCommunicator::Hangs() const {
  return absl::DeadlineExceededError(
      absl::StrCat(place_.names[rank()], ": CUDA device ", place_.device,
                   " hangs: a copy for the replicas' sums has not finished within ",
                   absl::FormatDuration(compute::kDeviceWaitMax)));
}

std::string NcclCommunicator::Others() const {
  std::string names;
  int named = 0;
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    if (named == kNamesMax) return absl::StrCat(names, " and others");
    absl::StrAppend(&names, named++ == 0 ? "" : ", ", place_.names[other]);
  }
  return names;
}

}  // namespace longhaul::worker
