// Which frames may travel over one direction of a link, and how large they may be.
#ifndef LONGHAUL_WORKER_COMM_LINK_RULES_H_
#define LONGHAUL_WORKER_COMM_LINK_RULES_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "compression/codec.h"
#include "compression/frame.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

// What the receiver's plan says to expect of a frame; nothing is allocated before this holds.
struct FrameLimits {
  uint64_t elements_max = 0;
  uint64_t payload_bytes_max = 0;
};

// What a frame of one kind must be.
struct KindRule {
  const compression::Codec* codec = nullptr;
  compression::ElementType element = compression::ElementType::kFloat32;
  FrameLimits limits;
};

// Immutable. Activations, evaluation activations and verdicts go to the next stage, gradients and
// norms to the one before, a tied gradient to a lower stage, a tied sum to a higher one.
class LinkRules {
 public:
  // InvalidArgument if the codec is unknown or a size is beyond what frames can have.
  static absl::StatusOr<LinkRules> Make(const LinkOptions& link, int from_stage, int to_stage);

  // Null for a kind that may not travel here.
  const KindRule* Find(FrameKind kind) const;
  // That a parsed header agrees with the rule of its kind.
  absl::Status Check(const compression::FrameHeader& header) const;

  size_t kinds() const { return rules_.size(); }
  // Header and payload of the largest allowed frame.
  uint64_t frame_bytes_max() const { return frame_bytes_max_; }

 private:
  LinkRules() = default;
  void Add(FrameKind kind, const compression::Codec& codec, compression::ElementType element,
           uint64_t elements_max);

  std::map<FrameKind, KindRule> rules_;
  uint64_t frame_bytes_max_ = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_LINK_RULES_H_
