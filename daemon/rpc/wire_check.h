// Reads the fields of one message from outside, remembering the first that is not acceptable.
#ifndef LONGHAUL_DAEMON_RPC_WIRE_CHECK_H_
#define LONGHAUL_DAEMON_RPC_WIRE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "base/limits.h"
#include "checkpoint/manifest.h"
#include "longhaul/v1/plan.pb.h"

namespace longhaul::daemon {

// Upper bounds on what a message may state. Far beyond any real cluster, far below any overflow.
inline constexpr uint64_t kStagesMax = kGroupsMax;
inline constexpr uint64_t kStepsMax = uint64_t{1} << 50;
inline constexpr uint64_t kCountMax = uint64_t{1} << 62;
inline constexpr size_t kTextBytesMax = 4096;
inline constexpr size_t kJsonBytesMax = 4 << 20;
inline constexpr int kShardParametersMax = 65536;

class WireCheck {
 public:
  // `message` is the message's name, for errors.
  explicit WireCheck(absl::string_view message) : message_(message) {}

  std::string Run(const std::string& name) { return Name("run", name); }
  std::string Name(absl::string_view field, const std::string& name);
  int Stage(uint32_t stage) { return static_cast<int>(Count("stage", stage, kStagesMax - 1)); }
  int64_t Step(uint64_t step) { return static_cast<int64_t>(Count("step", step, kStepsMax)); }
  // `value`, at most `max`.
  uint64_t Count(absl::string_view field, uint64_t value, uint64_t max);
  // `value` if it is from 0 to kCountMax.
  int64_t Size(absl::string_view field, int64_t value);
  // A finite number, not negative.
  double Measure(absl::string_view field, double value);
  // At most `bytes_max` bytes.
  std::string Text(absl::string_view field, const std::string& text,
                   size_t bytes_max = kTextBytesMax);
  std::string Sha256(absl::string_view field, const std::string& text);
  // A host and a port that can be dialled.
  std::string DialAddress(absl::string_view field, const std::string& text);
  checkpoint::Shard Shard(const v1::Shard& shard);
  // Bytes of a replica for its peers, at most kRendezvousBytesMax.
  std::string Rendezvous(const std::string& bytes);
  // Notes `error` unless it is OK.
  void Also(const absl::Status& error);

  // OK, or InvalidArgument with message, field and problem.
  absl::Status status() const { return status_; }

 private:
  void Note(absl::string_view field, absl::string_view problem);

  const std::string message_;
  absl::Status status_;
};

inline Epoch FromWire(const v1::Epoch& epoch) { return {epoch.term(), epoch.number()}; }
inline void ToWire(const Epoch& epoch, v1::Epoch* wire) {
  wire->set_term(epoch.term);
  wire->set_number(epoch.number);
}
// Adds the shard's fields to an empty message.
void ToWire(const checkpoint::Shard& shard, v1::Shard* wire);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_WIRE_CHECK_H_
