#include "worker/host/outbox.h"

#include <algorithm>
#include <optional>

#include "checkpoint/roundness.h"

namespace longhaul::worker {
namespace {

// Of the checkpoint that it is about, if any.
std::optional<int64_t> CheckpointStep(const ToCoordinator& message) {
  if (const auto* const stored = std::get_if<ShardStored>(&message)) return stored->step;
  if (const auto* const failed = std::get_if<ShardFailed>(&message)) return failed->step;
  return std::nullopt;
}

}  // namespace

void Outbox::Pause() {
  std::lock_guard<std::mutex> lock(mutex_);
  connected_ = false;
}

void Outbox::Resend() {
  std::lock_guard<std::mutex> lock(mutex_);
  connected_ = true;
  for (const StepReport& report : reports_) SendLocked(report);
  for (const ToCoordinator& message : kept_) SendLocked(message);
}

void Outbox::AddReport(const StepReport& report) {
  constexpr uint64_t kToldEvery = 1000;
  uint64_t dropped = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reports_.push_back(report);
    if (reports_.size() > reports_max_) {
      reports_.pop_front();
      dropped = ++reports_dropped_;
    }
    SendLocked(report);
  }
  if (dropped == 1 || (dropped > 0 && dropped % kToldEvery == 0)) dropped_(dropped);
}

void Outbox::AcknowledgeReport(const std::string& run, const Epoch& epoch, int64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto acknowledged = [&](const StepReport& report) {
    return report.run == run && report.epoch == epoch && report.step <= step;
  };
  while (!reports_.empty() && acknowledged(reports_.front())) reports_.pop_front();
  if (reports_.empty() || (reports_.front().run == run && reports_.front().epoch == epoch)) return;
  // Behind older reports that nobody has acknowledged yet.
  reports_.erase(std::remove_if(reports_.begin(), reports_.end(), acknowledged), reports_.end());
}

void Outbox::Begin(const std::string& run, const Epoch& epoch) {
  std::lock_guard<std::mutex> lock(mutex_);
  run_ = run;
  epoch_ = epoch;
  kept_.clear();
}

void Outbox::Add(const std::string& run, const Epoch& epoch, const ToCoordinator& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (run_.empty() || run != run_ || epoch != epoch_) return;
  kept_.push_back(message);
  BoundCheckpointsLocked();
  SendLocked(message);
}

void Outbox::Tell(const ToCoordinator& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  SendLocked(message);
}

void Outbox::BoundCheckpointsLocked() {
  checkpoint::RoundSteps round;
  std::deque<ToCoordinator> stay;
  for (auto message = kept_.rbegin(); message != kept_.rend(); ++message) {
    const std::optional<int64_t> step = CheckpointStep(*message);
    if (!step || round.Keep(*step)) stay.push_front(std::move(*message));
  }
  kept_ = std::move(stay);
}

void Outbox::Forget(const std::string& run, const Epoch& epoch) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (run != run_ || epoch < epoch_) return;
  run_.clear();
  kept_.clear();
}

void Outbox::SendLocked(const ToCoordinator& message) {
  if (connected_ && !link_.Send(message)) connected_ = false;
}

}  // namespace longhaul::worker
