// How a stage ends, and what is said of it then.
#include "absl/strings/str_cat.h"
#include "worker/host/stage_job.h"

namespace longhaul::worker {

void StageJob::Run() {
  previous_.reset();
  const absl::Status status = RunToEnd();
  const absl::Status device = status.ok() ? absl::OkStatus() : LookAtDevice();
  if (device.ok()) {
    FreeMemory();
    if (!status.ok()) ReportFailure(status);
    return;
  }
  // Whoever waits is told first: what frees the memory of a card that hangs may take for ever.
  ReportFailure(status);
  if (dependencies_.on_device_lost) dependencies_.on_device_lost(device);
  FreeMemory();
}

absl::Status StageJob::LookAtDevice() {
  return backend_ == nullptr ? absl::OkStatus() : backend_->Synchronize();
}

void StageJob::ReportFailure(const absl::Status& ended) {
  const absl::Status cancelled = CheckCancelled();
  bool failed = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failed = failed_;
  }
  const absl::Status& status = failed ? cancelled : ended;
  SetPhase(absl::StrCat("failed: ", status.message()));
  if (!failed && !cancelled.ok()) {
    Log(LogLevel::kInfo, absl::StrCat("stage given up: ", cancelled.message()));
    return;
  }
  Log(LogLevel::kError,
      absl::StrCat("stage failed after step ", completed_step(), ": ", status.message()));
  outbox_.Add(assignment_.run, assignment_.epoch,
              Failed{assignment_.run, assignment_.epoch, assignment_.stage, completed_step(),
                     status, damaged_shard_, divergence_});
}

void StageJob::FreeMemory() {
  replicas_.LeaveBackend();
  gradient_tree_.reset();
  stage_.reset();
  backend_.reset();
  batches_.reset();
  tokens_.reset();
}

}  // namespace longhaul::worker
