// What each kind of instruction is: its text code, whether it moves a frame, to or from whom, and
// which groups have it. One table that the text form, the generators, the replay checker, the
// timeline and the executor share.
#ifndef LONGHAUL_SCHEDULE_INSTRUCTION_KIND_H_
#define LONGHAUL_SCHEDULE_INSTRUCTION_KIND_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "schedule/program.h"

namespace longhaul::schedule {

// A collective is done by all replicas of a stage together.
enum class Role { kCompute, kSend, kReceive, kCollective };

// The other end of a send or receive, seen from the stage whose instruction it is.
enum class Peer { kNone, kUpstream, kDownstream, kFirst, kLast };

struct KindInfo {
  InstructionKind kind;
  absl::string_view code;  // "RA"
  bool per_micro_batch;    // else once a step
  Role role;
  Peer peer;
  InstructionKind
      partner;  // the kind at the other end of the same frame; itself for what is no frame
};

// Every kind, in the order of the enumeration.
absl::Span<const KindInfo> AllKinds();
const KindInfo& Info(InstructionKind kind);

// The stage at the other end. `kind` is a send or a receive that `stage` has.
int PeerStage(InstructionKind kind, int stage, int stages);

// Whether a training program of a replica of `stage` must have this kind: once for each of its
// micro-batches, or once a step. Otherwise it must not.
bool TrainingHas(InstructionKind kind, int stage, int replica, const Shape& shape);
// The same for an evaluation program.
bool EvaluationHas(InstructionKind kind, int stage, const Shape& shape);

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_INSTRUCTION_KIND_H_
