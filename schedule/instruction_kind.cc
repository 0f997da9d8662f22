#include "schedule/instruction_kind.h"

#include <cstddef>
#include <iterator>

#include "base/check.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

constexpr KindInfo kKinds[] = {
    {kRecvActivation, "RA", true, Role::kReceive, Peer::kUpstream, kSendActivation},
    {kForward, "F", true, Role::kCompute, Peer::kNone, kForward},
    {kSendActivation, "SA", true, Role::kSend, Peer::kDownstream, kRecvActivation},
    {kRecvGradient, "RG", true, Role::kReceive, Peer::kDownstream, kSendGradient},
    {kBackward, "B", true, Role::kCompute, Peer::kNone, kBackward},
    {kSendGradient, "SG", true, Role::kSend, Peer::kUpstream, kRecvGradient},
    {kReduceGradients, "AR", false, Role::kCollective, Peer::kNone, kReduceGradients},
    {kReduceLosses, "AL", false, Role::kCollective, Peer::kNone, kReduceLosses},
    {kSendTiedGradient, "STG", false, Role::kSend, Peer::kFirst, kRecvTiedGradient},
    {kRecvTiedGradient, "RTG", false, Role::kReceive, Peer::kLast, kSendTiedGradient},
    {kSendTiedSum, "STS", false, Role::kSend, Peer::kLast, kRecvTiedSum},
    {kRecvTiedSum, "RTS", false, Role::kReceive, Peer::kFirst, kSendTiedSum},
    {kBroadcastTiedSum, "BT", false, Role::kCollective, Peer::kNone, kBroadcastTiedSum},
    {kRecvNorms, "RN", false, Role::kReceive, Peer::kDownstream, kSendNorms},
    {kSendNorms, "SN", false, Role::kSend, Peer::kUpstream, kRecvNorms},
    {kDecideVerdict, "DV", false, Role::kCompute, Peer::kNone, kDecideVerdict},
    {kRecvVerdict, "RV", false, Role::kReceive, Peer::kUpstream, kSendVerdict},
    {kSendVerdict, "SV", false, Role::kSend, Peer::kDownstream, kRecvVerdict},
    {kBroadcastVerdict, "BV", false, Role::kCollective, Peer::kNone, kBroadcastVerdict},
    {kOptimizerStep, "O", false, Role::kCompute, Peer::kNone, kOptimizerStep},
};

// The table is indexed by the enumeration.
constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    if (static_cast<size_t>(kKinds[i].kind) != i) return false;
  }
  return static_cast<size_t>(kOptimizerStep) + 1 == std::size(kKinds);
}
static_assert(InOrder());

bool HasReplicas(const Shape& shape, int stage) {
  return !shape.replicas.empty() && shape.replicas[stage] > 1;
}

}  // namespace

absl::Span<const KindInfo> AllKinds() { return kKinds; }

const KindInfo& Info(InstructionKind kind) {
  const size_t index = static_cast<size_t>(kind);
  LH_CHECK(index < std::size(kKinds), "instruction kind ", index);
  return kKinds[index];
}

int PeerStage(InstructionKind kind, int stage, int stages) {
  switch (Info(kind).peer) {
    case Peer::kUpstream:
      return stage - 1;
    case Peer::kDownstream:
      return stage + 1;
    case Peer::kFirst:
      return 0;
    case Peer::kLast:
      return stages - 1;
    case Peer::kNone:
      break;
  }
  LH_CHECK(false, Info(kind).code, " has no peer");
  return -1;
}

bool TrainingHas(InstructionKind kind, int stage, int replica, const Shape& shape) {
  const bool first = stage == 0;
  const bool last = stage == shape.stages - 1;
  const bool tied = shape.tied && shape.stages > 1;
  const bool leader = replica == 0;
  const bool replicated = HasReplicas(shape, stage);
  switch (kind) {
    case kForward:
    case kBackward:
    case kOptimizerStep:
      return true;
    case kRecvActivation:
    case kSendGradient:
      return !first;
    case kSendActivation:
    case kRecvGradient:
      return !last;
    case kReduceGradients:
    case kBroadcastVerdict:
      return replicated;
    case kReduceLosses:
      return replicated && last;
    case kBroadcastTiedSum:
      return replicated && tied && (first || last);
    case kSendNorms:
    case kRecvVerdict:
      return leader && !first;
    case kRecvNorms:
    case kSendVerdict:
      return leader && !last;
    case kDecideVerdict:
      return leader && first;
    case kRecvTiedGradient:
    case kSendTiedSum:
      return leader && tied && first;
    case kSendTiedGradient:
    case kRecvTiedSum:
      return leader && tied && last;
  }
  return false;
}

bool EvaluationHas(InstructionKind kind, int stage, const Shape& shape) {
  switch (kind) {
    case kForward:
      return true;
    case kRecvActivation:
      return stage > 0;
    case kSendActivation:
      return stage < shape.stages - 1;
    case kReduceLosses:
      return stage == shape.stages - 1 && HasReplicas(shape, stage);
    default:
      return false;
  }
}

}  // namespace longhaul::schedule
