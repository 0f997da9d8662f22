#include "worker/comm/replica_offer.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "compression/little_endian.h"

namespace longhaul::worker {
namespace {

using compression::LoadLittleEndian;
using compression::StoreLittleEndian;

constexpr char kVersion = 1;
constexpr size_t kWordBytesMax = 128;  // of library and card
constexpr size_t kIdBytesMax = 1024;

void Append(absl::string_view text, std::string& bytes) {
  LH_CHECK(text.size() <= kRendezvousBytesMax, text.size(), " bytes");
  char length[sizeof(uint16_t)];
  StoreLittleEndian(static_cast<uint16_t>(text.size()), length);
  bytes.append(length, sizeof(length));
  bytes.append(text.data(), text.size());
}

// Takes what Append appended off the front of `bytes`; false if that is not there or too long.
bool Take(absl::string_view& bytes, size_t bytes_max, std::string& text) {
  if (bytes.size() < sizeof(uint16_t)) return false;
  const auto length = LoadLittleEndian<uint16_t>(bytes.data());
  bytes.remove_prefix(sizeof(length));
  if (length > bytes_max || length > bytes.size()) return false;
  text.assign(bytes.data(), length);
  bytes.remove_prefix(length);
  return true;
}

// They appear in messages.
bool IsWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char character) {
    return absl::ascii_isprint(character);
  });
}

bool Parse(absl::string_view bytes, ReplicaOffer& offer) {
  if (bytes.empty() || bytes.front() != kVersion) return false;
  bytes.remove_prefix(1);
  if (!Take(bytes, kRendezvousBytesMax, offer.mesh)) return false;
  if (bytes.empty()) return true;
  DeviceOffer& device = offer.device.emplace();
  return Take(bytes, kWordBytesMax, device.library) && Take(bytes, kWordBytesMax, device.card) &&
         Take(bytes, kIdBytesMax, device.id) && bytes.empty() && IsWord(device.library) &&
         IsWord(device.card);
}

}  // namespace

std::string EncodeOffer(const ReplicaOffer& offer) {
  std::string bytes(1, kVersion);
  Append(offer.mesh, bytes);
  if (offer.device.has_value()) {
    Append(offer.device->library, bytes);
    Append(offer.device->card, bytes);
    Append(offer.device->id, bytes);
  }
  LH_CHECK(bytes.size() <= kRendezvousBytesMax, bytes.size(), " bytes");
  return bytes;
}

absl::StatusOr<ReplicaOffer> DecodeOffer(absl::string_view bytes, absl::string_view name) {
  ReplicaOffer offer;
  if (Parse(bytes, offer)) return offer;
  return absl::InvalidArgumentError(absl::StrCat("the rendezvous of ", std::string(name), " (",
                                                 bytes.size(),
                                                 " bytes) is not what a replica of this version "
                                                 "publishes; run the same version on all nodes"));
}

std::string WhyNotOnDevices(const std::vector<ReplicaOffer>& offers,
                            const std::vector<std::string>& names) {
  LH_CHECK(offers.size() == names.size(), offers.size(), " offers of ", names.size());
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    if (!offers[rank].device.has_value()) {
      return absl::StrCat(names[rank], " cannot sum on a device");
    }
  }
  if (offers.empty() || offers[0].device->id.empty()) return "the first replica offers no group";
  for (size_t rank = 1; rank < offers.size(); ++rank) {
    const DeviceOffer& device = *offers[rank].device;
    if (device.library != offers[0].device->library) {
      return absl::StrCat(names[rank], " has ", device.library, ", ", names[0], " has ",
                          offers[0].device->library);
    }
    for (size_t other = 0; other < rank; ++other) {
      if (device.card == offers[other].device->card) {
        return absl::StrCat(names[rank], " and ", names[other], " share one card");
      }
    }
  }
  return "";
}

}  // namespace longhaul::worker
