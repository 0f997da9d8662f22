#include "coordinator/host/request_table.h"

#include <utility>

#include "base/status_copy.h"

namespace longhaul::coordinator {
namespace {

absl::StatusOr<std::string> OwnCopy(const absl::StatusOr<std::string>& answer) {
  if (answer.ok()) return *answer;
  return longhaul::OwnCopy(answer.status());
}

}  // namespace

uint64_t RequestTable::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t request = ++newest_;
  requests_[request] = std::nullopt;
  if (closed_.has_value()) requests_[request] = longhaul::OwnCopy(*closed_);
  return request;
}

void RequestTable::Resolve(uint64_t request, const absl::StatusOr<std::string>& answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.has_value()) return;
  found->second = OwnCopy(answer);
  changed_.notify_all();
}

absl::StatusOr<std::string> RequestTable::Wait(uint64_t request, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = requests_.find(request);
  clock_.WaitUntil(lock, changed_, deadline, [&] { return found->second.has_value(); });
  absl::StatusOr<std::string> answer =
      found->second.has_value() ? OwnCopy(*found->second)
                                : absl::DeadlineExceededError(
                                      "the coordinator did not answer in time; it may still do "
                                      "what was asked: look with longhaul run ls");
  requests_.erase(found);
  return answer;
}

void RequestTable::Close(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = longhaul::OwnCopy(status);
  for (auto& [request, answer] : requests_) {
    if (!answer.has_value()) answer = longhaul::OwnCopy(status);
  }
  changed_.notify_all();
}

}  // namespace longhaul::coordinator
