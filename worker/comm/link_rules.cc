#include "worker/comm/link_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longhaul::worker {

using compression::Codec;
using compression::ElementType;
using compression::FindCodec;
using compression::FrameHeader;
using compression::kElementsMax;
using compression::kFrameHeaderBytes;

absl::StatusOr<LinkRules> LinkRules::Make(const LinkOptions& link, int from_stage, int to_stage) {
  LH_ASSIGN_OR_RETURN(const Codec* const codec, FindCodec(absl::string_view(link.codec)));
  LH_ASSIGN_OR_RETURN(const Codec* const none, FindCodec(absl::string_view("none")));
  if (std::max({link.tensor_elements, link.tied_elements, link.norms_max}) > kElementsMax) {
    return absl::InvalidArgumentError(absl::StrCat("the link to stage ", link.peer_stage,
                                                   " has tensors of more than ", kElementsMax,
                                                   " elements"));
  }
  LinkRules rules;
  if (to_stage == from_stage + 1) {
    rules.Add(FrameKind::kActivation, *codec, ElementType::kFloat32, link.tensor_elements);
    rules.Add(FrameKind::kEvaluationActivation, *codec, ElementType::kFloat32,
              link.tensor_elements);
    rules.Add(FrameKind::kVerdict, *none, ElementType::kFloat64, kVerdictDoublesMax);
  }
  if (to_stage + 1 == from_stage) {
    rules.Add(FrameKind::kGradient, *codec, ElementType::kFloat32, link.tensor_elements);
    rules.Add(FrameKind::kNorms, *none, ElementType::kFloat64, link.norms_max);
  }
  if (link.tied_elements > 0) {
    const FrameKind kind = from_stage > to_stage ? FrameKind::kTiedGradient : FrameKind::kTiedSum;
    rules.Add(kind, *none, ElementType::kFloat32, link.tied_elements);
  }
  return rules;
}

void LinkRules::Add(FrameKind kind, const Codec& codec, ElementType element,
                    uint64_t elements_max) {
  const uint64_t payload_max = element == ElementType::kFloat64
                                   ? elements_max * sizeof(double)
                                   : codec.EncodedSizeMax(elements_max);
  rules_[kind] = {&codec, element, {elements_max, payload_max}};
  frame_bytes_max_ = std::max(frame_bytes_max_, kFrameHeaderBytes + payload_max);
}

const KindRule* LinkRules::Find(FrameKind kind) const {
  const auto rule = rules_.find(kind);
  return rule == rules_.end() ? nullptr : &rule->second;
}

absl::Status LinkRules::Check(const FrameHeader& header) const {
  const KindRule* const rule = Find(header.key.kind);
  if (rule == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of kind ", FrameKindName(header.key.kind), " may not travel here"));
  }
  if (header.element != rule->element || header.codec != rule->codec->wire_id()) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(header.key), ": codec ", header.codec, " and element type ",
        static_cast<int>(header.element), ", the plan says codec ", rule->codec->name(), " (",
        rule->codec->wire_id(), ") and element type ", static_cast<int>(rule->element)));
  }
  if (header.elements > rule->limits.elements_max ||
      header.payload_bytes > rule->limits.payload_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(header.key), ": ", header.elements, " elements in ",
                     header.payload_bytes, " bytes, the plan allows ", rule->limits.elements_max,
                     " in ", rule->limits.payload_bytes_max));
  }
  return absl::OkStatus();
}

}  // namespace longhaul::worker
