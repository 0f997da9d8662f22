#include "worker/host/replica_group.h"

#include <optional>
#include <utility>

#include "base/host_port.h"
#include "base/status_copy.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

// All replicas have said that they are ready by then.
constexpr absl::Duration kConnectMax = absl::Seconds(30);

std::string HostOf(const std::string& address) {
  const std::optional<HostPort> parts = SplitHostPort(address);
  return parts.has_value() ? std::string(parts->host) : address;
}

}  // namespace

absl::Status ReplicaGroup::Listen(const StagePlan& plan, const Assignment& assignment,
                                  Clock& clock) {
  if (plan.replica_names.empty()) return absl::OkStatus();
  GlooOptions options;
  options.rank = plan.replica;
  options.names = plan.replica_names;
  options.host = HostOf(assignment.stages[assignment.stage].data_address);
  options.connect_max = kConnectMax;
  LH_ASSIGN_OR_RETURN(auto listening, GlooRendezvous::Listen(options, clock));
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return OwnCopy(cancelled_);
  listening_ = std::move(listening);
  return absl::OkStatus();
}

std::string ReplicaGroup::rendezvous() const {
  return listening_ == nullptr ? "" : listening_->rendezvous();
}

absl::Status ReplicaGroup::Connect(const std::vector<std::string>& rendezvous) {
  if (listening_ == nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Mesh>> mesh = listening_->Connect(rendezvous);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return OwnCopy(cancelled_);
  if (!mesh.ok()) return mesh.status();
  collective_ = MakeCollective(*std::move(mesh));
  return absl::OkStatus();
}

void ReplicaGroup::Watch(const StagePlan& plan, Exchange& exchange) {
  for (const LinkOptions& link : plan.links) {
    if (link.peer_stage != plan.stage) continue;
    watching_.emplace_back(
        [this, &exchange, peer = link.peer_group] { Cancel(exchange.WaitForSilence(peer)); });
  }
}

void ReplicaGroup::EndWatch() {
  for (std::thread& watch : watching_) watch.join();
  watching_.clear();
}

void ReplicaGroup::Cancel(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return;
  cancelled_ = OwnCopy(reason);
  if (collective_ != nullptr) {
    collective_->Cancel(reason);
  } else if (listening_ != nullptr) {
    listening_->Cancel();
  }
}

}  // namespace longhaul::worker
