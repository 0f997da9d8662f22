// What a replica publishes so that the others of its stage can meet it, and what they make of it.
#ifndef LONGHAUL_WORKER_COMM_REPLICA_OFFER_H_
#define LONGHAUL_WORKER_COMM_REPLICA_OFFER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/comm/device_rendezvous.h"

namespace longhaul::worker {

struct ReplicaOffer {
  std::string mesh;                   // GlooRendezvous::rendezvous()
  std::optional<DeviceOffer> device;  // none: this replica sums on its host
  bool operator==(const ReplicaOffer&) const = default;
};

// Bytes for the control stream, at most kRendezvousBytesMax: a version, then each text with its
// length.
std::string EncodeOffer(const ReplicaOffer& offer);
// InvalidArgument, with the replica's name, if the bytes are not an offer.
absl::StatusOr<ReplicaOffer> DecodeOffer(absl::string_view bytes, absl::string_view name);

// Why replicas that offer this, by rank, cannot sum on their devices, for people; empty: they can.
// The same on every replica, so that all choose alike.
std::string WhyNotOnDevices(const std::vector<ReplicaOffer>& offers,
                            const std::vector<std::string>& names);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_REPLICA_OFFER_H_
