#include "coordinator/host/request_table.h"

#include <utility>

namespace longhaul::coordinator {

uint64_t RequestTable::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t request = ++newest_;
  requests_[request] = std::nullopt;
  if (closed_.has_value()) requests_[request] = *closed_;
  return request;
}

void RequestTable::Resolve(uint64_t request, absl::StatusOr<std::string> answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.has_value()) return;
  found->second = std::move(answer);
  changed_.notify_all();
}

absl::StatusOr<std::string> RequestTable::Wait(uint64_t request, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = requests_.find(request);
  clock_.WaitUntil(lock, changed_, deadline, [&] { return found->second.has_value(); });
  absl::StatusOr<std::string> answer =
      found->second.has_value() ? *std::move(found->second)
                                : absl::DeadlineExceededError(
                                      "the coordinator did not answer in time; it may still do "
                                      "what was asked: look with longhaul run ls");
  requests_.erase(found);
  return answer;
}

void RequestTable::Close(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = status;
  for (auto& [request, answer] : requests_) {
    if (!answer.has_value()) answer = status;
  }
  changed_.notify_all();
}

}  // namespace longhaul::coordinator
