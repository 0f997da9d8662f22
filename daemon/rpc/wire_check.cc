#include "daemon/rpc/wire_check.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "daemon/values.h"

namespace longhaul::daemon {

std::string WireCheck::Name(absl::string_view field, const std::string& name) {
  if (const absl::Status valid = ValidateName(field, name); !valid.ok()) {
    Note(field, valid.message());
  }
  return name;
}

uint64_t WireCheck::Count(absl::string_view field, uint64_t value, uint64_t max) {
  if (value <= max) return value;
  Note(field, absl::StrCat(value, " is more than the ", max, " allowed"));
  return 0;
}

int64_t WireCheck::Size(absl::string_view field, int64_t value) {
  if (value < 0) Note(field, absl::StrCat(value, " is negative"));
  return value < 0 ? 0
                   : static_cast<int64_t>(Count(field, static_cast<uint64_t>(value), kCountMax));
}

double WireCheck::Measure(absl::string_view field, double value) {
  if (!std::isfinite(value) || value < 0) {
    Note(field, absl::StrCat(value, " is not a finite number from 0 up"));
    return 0;
  }
  return value;
}

std::string WireCheck::Text(absl::string_view field, const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  Note(field, absl::StrCat(text.size(), " bytes, more than the ", bytes_max, " allowed"));
  return "";
}

std::string WireCheck::Sha256(absl::string_view field, const std::string& text) {
  if (!IsSha256Hex(text)) Note(field, "is not a SHA-256 in hexadecimal digits");
  return text;
}

std::string WireCheck::DialAddress(absl::string_view field, const std::string& text) {
  const auto address = ParseAddress(Text(field, text, 300));
  if (!address.ok()) {
    Note(field, address.status().message());
  } else if (address->port == 0 || IsWildcard(*address)) {
    Note(field, absl::StrCat("'", text, "' cannot be dialled"));
  }
  return text;
}

std::string WireCheck::Rendezvous(const std::string& bytes) {
  if (bytes.size() <= kRendezvousBytesMax) return bytes;
  Note("rendezvous", absl::StrCat(bytes.size(), " bytes, at most ", kRendezvousBytesMax));
  return "";
}

checkpoint::Shard WireCheck::Shard(const v1::Shard& shard) {
  checkpoint::Shard result;
  result.sha256 = Sha256("shard", shard.sha256());
  result.bytes = Count("shard bytes", shard.bytes(), kCountMax);
  if (shard.parameters_size() > kShardParametersMax) {
    Note("shard parameters", absl::StrCat(shard.parameters_size(), " are more than the ",
                                          kShardParametersMax, " allowed"));
    return result;
  }
  for (const std::string& parameter : shard.parameters()) {
    result.parameters.push_back(Text("shard parameter", parameter));
  }
  return result;
}

void WireCheck::Also(const absl::Status& error) {
  if (!error.ok() && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(message_, ": ", error.message()));
  }
}

void WireCheck::Note(absl::string_view field, absl::string_view problem) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(message_, ": ", field, ": ", problem));
}

void ToWire(const checkpoint::Shard& shard, v1::Shard* wire) {
  wire->set_sha256(shard.sha256);
  wire->set_bytes(shard.bytes);
  wire->mutable_parameters()->Add(shard.parameters.begin(), shard.parameters.end());
}

}  // namespace longhaul::daemon
