#include "worker/host/worker_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/host/outbox.h"
#include "worker/host/stage_job.h"

namespace longhaul::worker {

namespace {

// Signs of life come five times in it; a shorter lease is no use on a data link.
constexpr absl::Duration kSilenceMaxMin = absl::Seconds(1);
constexpr size_t kReportsKept = 100000;  // while the coordinator is away

}  // namespace

class WorkerHost::Impl {
 public:
  Impl(WorkerHostOptions options, WorkerHostDependencies dependencies)
      : options_(std::move(options)),
        dependencies_(std::move(dependencies)),
        outbox_(*dependencies_.control, kReportsKept,
                [this](uint64_t dropped) {
                  dependencies_.log(
                      LogLevel::kWarning,
                      absl::StrCat(dropped,
                                   " step reports dropped so far: the coordinator is away "
                                   "and more of them wait than are kept"));
                }),
        datasets_(absl::StrCat(options_.folder, "/data")) {}

  Register MakeRegister() {
    outbox_.Pause();
    std::lock_guard<std::mutex> lock(mutex_);
    Register message{options_.facts, std::nullopt};
    if (job_ != nullptr) {
      const Assignment& assignment = job_->assignment();
      message.attachment =
          Attachment{assignment.run, assignment.epoch, assignment.stage, job_->completed_step()};
    }
    return message;
  }

  void On(const Accepted& accepted) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      lease_ = accepted.lease;
    }
    outbox_.Resend();
  }

  // Who owns the control stream says so and dials again; a stage that is training goes on.
  void On(const Refused&) {}

  void On(const Assignment& assignment) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ != nullptr) {
      const Assignment& current = job_->assignment();
      if (current.run == assignment.run && current.epoch >= assignment.epoch) return;
      job_->Cancel(absl::CancelledError("another assignment replaces it"));
      Retire();
    }
    dependencies_.log(
        LogLevel::kInfo,
        absl::StrCat("assigned: run=", assignment.run, " epoch=", ToString(assignment.epoch),
                     " device group ", assignment.stage, " of ", assignment.stages.size()));
    outbox_.Begin(assignment.run, assignment.epoch);
    WorkerHostOptions options = options_;
    if (!options.peer_silence_max) options.peer_silence_max = std::max(lease_, kSilenceMaxMin);
    job_ = std::make_unique<StageJob>(assignment, std::move(options),
                                      StageJobContext{dependencies_, outbox_, totals_, datasets_},
                                      std::move(retired_));
  }

  void On(const Start& start) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (IsCurrent(start.run, start.epoch)) job_->Start(start.rendezvous);
  }

  void On(const Stop& stop) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (IsCurrent(stop.run, stop.epoch)) job_->Stop();
  }

  void On(const Abort& abort) {
    outbox_.Forget(abort.run, abort.epoch);
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ == nullptr || job_->assignment().run != abort.run ||
        job_->assignment().epoch > abort.epoch) {
      return;
    }
    dependencies_.log(LogLevel::kInfo, absl::StrCat("leaving run=", abort.run, ": ", abort.reason));
    job_->Cancel(absl::AbortedError(abort.reason));
    Retire();
  }

  void On(const StepAcknowledged& acknowledged) {
    outbox_.AcknowledgeReport(acknowledged.run, acknowledged.epoch, acknowledged.step);
  }

  void On(const Released& released) {
    outbox_.Forget(released.run, released.epoch);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!IsCurrent(released.run, released.epoch)) return;
    job_->Cancel(absl::CancelledError("every stage of the run has ended"));
    Retire();
  }

  void FailStage(const absl::Status& reason) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ != nullptr) job_->Fail(reason);
  }

  std::string Describe() const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job_ == nullptr) return "idle";
    const Assignment& assignment = job_->assignment();
    return absl::StrCat("run ", assignment.run, " ", job_->name(), " step ", job_->completed_step(),
                        ", ", job_->phase());
  }

  bool busy() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return job_ != nullptr;
  }

  ExchangeCounters exchange_counters() const { return totals_.Sum(); }

 private:
  bool IsCurrent(const std::string& run, const Epoch& epoch) const {
    return job_ != nullptr && job_->assignment().run == run && job_->assignment().epoch == epoch;
  }

  // The job leaves by itself; its successor, or the destructor, waits for its thread.
  void Retire() { retired_ = std::move(job_); }

  const WorkerHostOptions options_;
  const WorkerHostDependencies dependencies_;
  Outbox outbox_;
  ExchangeTotals totals_;
  data::DatasetStore datasets_;
  mutable std::mutex mutex_;
  absl::Duration lease_ = absl::InfiniteDuration();  // guarded by mutex_; the last one granted
  std::unique_ptr<StageJob> retired_;                // guarded by mutex_
  std::unique_ptr<StageJob> job_;                    // guarded by mutex_; null: idle
};

WorkerHost::WorkerHost(WorkerHostOptions options, WorkerHostDependencies dependencies)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(dependencies))) {}

WorkerHost::~WorkerHost() = default;

Register WorkerHost::MakeRegister() const { return impl_->MakeRegister(); }

void WorkerHost::OnMessage(const ToWorker& message) {
  std::visit([this](const auto& m) { impl_->On(m); }, message);
}

void WorkerHost::FailStage(const absl::Status& reason) { impl_->FailStage(reason); }

std::string WorkerHost::Describe() const { return impl_->Describe(); }

bool WorkerHost::busy() const { return impl_->busy(); }

ExchangeCounters WorkerHost::exchange_counters() const { return impl_->exchange_counters(); }

}  // namespace longhaul::worker
