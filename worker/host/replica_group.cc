#include "worker/host/replica_group.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "worker/comm/staged_collective.h"

namespace longhaul::worker {
namespace {

// All replicas have said that they are ready by then.
constexpr absl::Duration kConnectMax = absl::Minutes(2);

std::string HostOf(const std::string& address) {
  const std::optional<HostPort> parts = SplitHostPort(address);
  return parts.has_value() ? std::string(parts->host) : address;
}

// An error says why this replica does not offer to sum on its device.
absl::StatusOr<std::unique_ptr<DeviceRendezvous>> OpenOnDevice(
    const StagePlan& plan, bool exact, compute::Backend& backend,
    const DeviceRendezvousFactory& on_device, Clock& clock) {
  if (backend.kind() == compute::DeviceKind::kCpu) {
    return absl::FailedPreconditionError("it computes on a processor");
  }
  if (exact) return absl::FailedPreconditionError("`exact_replicas` wants the hosts' order");
  if (on_device == nullptr) {
    return absl::FailedPreconditionError("this build has no sums between devices");
  }
  return on_device({plan.replica, plan.replica_names, kConnectMax}, backend, clock);
}

}  // namespace

absl::Status ReplicaGroup::Listen(const StagePlan& plan, const Assignment& assignment,
                                  compute::Backend& backend,
                                  const DeviceRendezvousFactory& on_device, Clock& clock) {
  if (plan.replica_names.empty()) return absl::OkStatus();
  backend_ = &backend;
  clock_ = &clock;
  names_ = plan.replica_names;
  GlooOptions options;
  options.rank = plan.replica;
  options.names = plan.replica_names;
  options.host = HostOf(assignment.stages[assignment.stage].data_address);
  options.connect_max = kConnectMax;
  LH_ASSIGN_OR_RETURN(auto listening, GlooRendezvous::Listen(options, clock));
  ReplicaOffer offer;
  offer.mesh = listening->rendezvous();
  auto opened = OpenOnDevice(plan, assignment.spec.exact_replicas, backend, on_device, clock);
  if (opened.ok()) {
    offer.device = (*opened)->offer();
  } else {
    no_device_ = std::string(opened.status().message());
  }
  rendezvous_ = EncodeOffer(offer);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return OwnCopy(cancelled_);
  listening_ = std::move(listening);
  if (opened.ok()) on_device_ = *std::move(opened);
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Connect(const std::vector<std::string>& rendezvous) {
  if (listening_ == nullptr) return absl::OkStatus();
  if (rendezvous.size() != names_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the rendezvous of ", rendezvous.size(),
                                                   " replicas instead of ", names_.size()));
  }
  std::vector<ReplicaOffer> offers;
  for (size_t rank = 0; rank < rendezvous.size(); ++rank) {
    LH_ASSIGN_OR_RETURN(offers.emplace_back(), DecodeOffer(rendezvous[rank], names_[rank]));
  }
  const std::string why_not = WhyNotOnDevices(offers, names_);
  if (why_not.empty() && on_device_ != nullptr) {
    how_ = absl::StrCat("sums gradients over ", on_device_->offer().library);
    return Keep(on_device_->Connect(offers[0].device->id));
  }
  if (backend_->kind() != compute::DeviceKind::kCpu) {
    how_ = absl::StrCat("sums gradients over the hosts: ", why_not);
    if (!no_device_.empty()) absl::StrAppend(&how_, "; this one: ", no_device_);
  }
  return ConnectOnHost(offers);
}

absl::Status ReplicaGroup::ConnectOnHost(const std::vector<ReplicaOffer>& offers) {
  std::vector<std::string> meshes;
  for (const ReplicaOffer& offer : offers) meshes.push_back(offer.mesh);
  absl::StatusOr<std::unique_ptr<Mesh>> mesh = listening_->Connect(meshes);
  LH_RETURN_IF_ERROR(
      Keep(mesh.ok() ? absl::StatusOr<std::unique_ptr<Collective>>(MakeCollective(*std::move(mesh)))
                     : mesh.status()));
  if (backend_->kind() == compute::DeviceKind::kCpu) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(staged_, MakeStagedCollective(*collective_, *backend_, *clock_));
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Keep(absl::StatusOr<std::unique_ptr<Collective>> collective) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return OwnCopy(cancelled_);
  if (!collective.ok()) return collective.status();
  collective_ = *std::move(collective);
  return absl::OkStatus();
}

void ReplicaGroup::LeaveBackend() {
  staged_ = nullptr;
  // They end without the lock: that waits a moment for the peers.
  std::unique_ptr<Collective> ending;
  std::unique_ptr<DeviceRendezvous> met;  // Cancel must not reach what `ending` owns
  std::lock_guard<std::mutex> lock(mutex_);
  met = std::move(on_device_);
  if (collective_ != nullptr && collective_->on_device()) ending = std::move(collective_);
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
    return;
  }
  if (listening_ != nullptr) listening_->Cancel();
  if (on_device_ != nullptr) on_device_->Cancel(reason);
}

}  // namespace longhaul::worker
