#include "worker/host/outbox.h"

#include <algorithm>

namespace longhaul::worker {

void Outbox::Pause() {
  std::lock_guard<std::mutex> lock(mutex_);
  connected_ = false;
}

void Outbox::Resend() {
  std::lock_guard<std::mutex> lock(mutex_);
  connected_ = true;
  for (const StepReport& report : reports_) SendLocked(report);
  for (const Kept& kept : kept_) SendLocked(kept.message);
}

void Outbox::AddReport(const StepReport& report) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (reports_.size() >= reports_max_) {
    reports_.pop_front();
    ++reports_dropped_;
  }
  reports_.push_back(report);
  SendLocked(report);
}

void Outbox::AcknowledgeReport(const std::string& run, int64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto acknowledged = [&](const StepReport& report) {
    return report.run == run && report.step == step;
  };
  reports_.erase(std::remove_if(reports_.begin(), reports_.end(), acknowledged), reports_.end());
}

void Outbox::Add(const Epoch& epoch, const std::string& run, const ToCoordinator& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back({run, epoch, message});
  SendLocked(message);
}

void Outbox::Forget(const std::string& run, const Epoch& epoch) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto settled = [&](const Kept& kept) { return kept.run == run && kept.epoch <= epoch; };
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(), settled), kept_.end());
}

uint64_t Outbox::reports_dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reports_dropped_;
}

void Outbox::SendLocked(const ToCoordinator& message) {
  if (connected_ && !link_.Send(message)) connected_ = false;
}

}  // namespace longhaul::worker
