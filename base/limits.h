// Bounds that several folders must agree on.
#ifndef LONGHAUL_BASE_LIMITS_H_
#define LONGHAUL_BASE_LIMITS_H_

#include <cstddef>

namespace longhaul {

// Device groups of one plan: its stages, each with its replicas.
inline constexpr int kGroupsMax = 1024;
// Replicas of one stage.
inline constexpr int kReplicasMax = 64;
// What one replica tells its peers, so that they can meet: bytes on the control stream.
inline constexpr size_t kRendezvousBytesMax = 16384;
// Steps skipped one after the other, since their gradients were not finite, that end a run.
inline constexpr int kSkippedStepsMax = 10;

}  // namespace longhaul

#endif  // LONGHAUL_BASE_LIMITS_H_
