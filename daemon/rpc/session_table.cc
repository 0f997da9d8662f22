#include "daemon/rpc/session_table.h"

#include <utility>

namespace longhaul::daemon {

std::shared_ptr<SessionTable::Queue> SessionTable::Open(uint64_t session) {
  auto queue = std::make_shared<Queue>(messages_max_, clock_);
  std::lock_guard<std::mutex> lock(mutex_);
  queues_[session] = queue;
  return queue;
}

void SessionTable::Close(uint64_t session) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = queues_.find(session);
  if (found == queues_.end()) return;
  found->second->Close();
  queues_.erase(found);
}

void SessionTable::Send(uint64_t session, control::ToWorker message) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = queues_.find(session);
  if (found == queues_.end() || found->second->TryPush(std::move(message))) return;
  if (!found->second->closed()) ++overflows_;
  found->second->Close();
}

uint64_t SessionTable::overflows() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return overflows_;
}

}  // namespace longhaul::daemon
