#include "schedule/replay_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "schedule/instruction_kind.h"

namespace longhaul::schedule {
namespace {

using enum InstructionKind;

// `kind` relies on `needed`, where the group has it.
struct Need {
  InstructionKind kind;
  InstructionKind needed;
  absl::string_view why;
};

constexpr absl::string_view kNotReduced = "the gradients of the other replicas are missing";
constexpr absl::string_view kNoVerdict = "the step is applied without a verdict";
constexpr Need kNeeds[] = {
    {kSendTiedGradient, kReduceGradients, kNotReduced},
    {kRecvTiedGradient, kReduceGradients, kNotReduced},
    {kSendTiedSum, kRecvTiedGradient, "the head's gradient is not in the sum"},
    {kRecvTiedSum, kSendTiedGradient, "the accumulator is overwritten before it was sent"},
    {kBroadcastTiedSum, kReduceGradients, kNotReduced},
    {kBroadcastTiedSum, kRecvTiedGradient, "the head's gradient is not in the sum"},
    {kBroadcastTiedSum, kRecvTiedSum, "the tied sum has not come"},
    {kSendNorms, kReduceGradients, kNotReduced},
    {kSendNorms, kRecvNorms, "the norms of the stages after this one are missing"},
    {kDecideVerdict, kReduceGradients, kNotReduced},
    {kDecideVerdict, kRecvNorms, "the norms of the stages after this one are missing"},
    {kDecideVerdict, kRecvTiedGradient, "the norm of the tied sum is not known"},
    {kSendVerdict, kDecideVerdict, "there is no verdict to send"},
    {kSendVerdict, kRecvVerdict, "there is no verdict to send"},
    {kBroadcastVerdict, kDecideVerdict, "there is no verdict to broadcast"},
    {kBroadcastVerdict, kRecvVerdict, "there is no verdict to broadcast"},
    {kOptimizerStep, kReduceGradients, kNotReduced},
    {kOptimizerStep, kBroadcastVerdict, kNoVerdict},
    {kOptimizerStep, kBroadcastTiedSum, "the tied sum is not in the gradient"},
    {kOptimizerStep, kDecideVerdict, kNoVerdict},
    {kOptimizerStep, kRecvVerdict, kNoVerdict},
    {kOptimizerStep, kSendVerdict, "the verdict is not forwarded before it is applied"},
    {kOptimizerStep, kSendNorms, "the norms are not sent before the weights change"},
    {kOptimizerStep, kSendTiedSum, "the tied sum is not sent before the weights change"},
    {kOptimizerStep, kRecvTiedSum, "the tied sum is not in the gradient"},
};

// Kinds that read or overwrite whole accumulators.
bool NeedsEveryGradient(InstructionKind kind) {
  return kind == kReduceGradients || kind == kSendTiedGradient || kind == kRecvTiedGradient ||
         kind == kSendNorms || kind == kDecideVerdict || kind == kOptimizerStep;
}

}  // namespace

ReplayGroup::ReplayGroup(const Program& program, const Shape& shape, std::vector<int> micro_batches,
                         bool evaluation)
    : program_(program),
      shape_(shape),
      evaluation_(evaluation),
      slots_(program),
      own_(std::move(micro_batches)),
      slot_owner_(program.slots, kNobody),
      phases_(shape.micro_batches, Phase::kAbsent),
      done_(AllKinds().size(), false) {}

std::string ReplayGroup::Execute(const Instruction& instruction) {
  const int m = instruction.micro_batch;
  switch (instruction.kind) {
    case kRecvActivation:
      return RecvActivation(m);
    case kForward:
      return Forward(m);
    case kSendActivation:
      return SendActivation(m);
    case kRecvGradient:
      return RecvGradient(m);
    case kBackward:
      return Backward(m);
    case kSendGradient:
      return SendGradient(m);
    default:
      return OnceAStep(instruction.kind);
  }
}

std::string ReplayGroup::Occupy(int m) {
  int& owner = slot_owner_[slots_.Of(m)];
  if (owner != kNobody) {
    return absl::StrCat("slot ", slots_.Of(m), " is still occupied by micro-batch ", owner);
  }
  owner = m;
  return "";
}

std::string ReplayGroup::RecvActivation(int m) {
  phases_[m] = Phase::kReceived;
  return Occupy(m);
}

std::string ReplayGroup::Forward(int m) {
  if (program_.stage > 0) {
    if (phases_[m] != Phase::kReceived) return "it computes before its activation has come";
  } else if (std::string why = Occupy(m); !why.empty()) {
    return why;
  }
  if (received_gradient_of_ != kNobody) {
    return absl::StrCat("it overwrites the gradient of micro-batch ", received_gradient_of_,
                        ", which has come but is not used");
  }
  phases_[m] = Phase::kForwarded;
  gradient_to_send_of_ = kNobody;
  if (evaluation_ && last()) Free(m);
  return "";
}

std::string ReplayGroup::SendActivation(int m) {
  if (phases_[m] == Phase::kDone) return "its slot has been freed by Backward";
  if (phases_[m] != Phase::kForwarded) return "there is no activation to send before Forward";
  if (evaluation_) Free(m);
  return "";
}

std::string ReplayGroup::RecvGradient(int m) {
  if (phases_[m] != Phase::kForwarded) return "a gradient comes before Forward or after Backward";
  if (received_gradient_of_ != kNobody) {
    return absl::StrCat("it overwrites the gradient of micro-batch ", received_gradient_of_,
                        ", which has come but is not used");
  }
  received_gradient_of_ = m;
  return "";
}

std::string ReplayGroup::Backward(int m) {
  if (phases_[m] != Phase::kForwarded) return "it computes before its Forward";
  if (!last() && received_gradient_of_ != m) return "it computes before its gradient has come";
  if (m != own_[backwards_]) {
    return absl::StrCat("gradients are accumulated out of micro-batch order: ", own_[backwards_],
                        " is next");
  }
  ++backwards_;
  phases_[m] = Phase::kDone;
  received_gradient_of_ = kNobody;
  gradient_to_send_of_ = m;
  Free(m);
  return "";
}

std::string ReplayGroup::SendGradient(int m) {
  if (gradient_to_send_of_ != m) {
    return phases_[m] == Phase::kDone ? "its gradient has been overwritten"
                                      : "there is no gradient to send before Backward";
  }
  return "";
}

std::string ReplayGroup::OnceAStep(InstructionKind kind) {
  if (NeedsEveryGradient(kind) && backwards_ < own_.size()) {
    return absl::StrCat("gradients are not complete: Backward of micro-batch ", own_[backwards_],
                        " is still to come");
  }
  if (kind == kReduceLosses) {
    for (const int m : own_) {
      if (phases_[m] >= Phase::kForwarded) continue;
      return absl::StrCat("losses are not complete: Forward of micro-batch ", m,
                          " is still to come");
    }
  }
  for (const Need& need : kNeeds) {
    if (need.kind != kind || Done(need.needed)) continue;
    if (!TrainingHas(need.needed, program_.stage, program_.replica, shape_)) continue;
    return absl::StrCat(need.why, ": ", Info(need.needed).code, " comes too late");
  }
  done_[static_cast<size_t>(kind)] = true;
  return "";
}

std::string ReplayGroup::EndStep() {
  for (const int owner : slot_owner_) {
    if (owner != kNobody) return absl::StrCat("micro-batch ", owner, " still occupies its slot");
  }
  phases_.assign(phases_.size(), Phase::kAbsent);
  done_.assign(done_.size(), false);
  backwards_ = 0;
  gradient_to_send_of_ = kNobody;
  return "";
}

}  // namespace longhaul::schedule
