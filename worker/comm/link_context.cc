#include "worker/comm/link_context.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace longhaul::worker {

std::string Seconds(absl::Duration duration) {
  return absl::StrCat(std::round(absl::ToDoubleSeconds(duration) * 10) / 10, " s");
}

std::string SelfName(const ExchangeOptions& options) {
  return options.name.empty() ? absl::StrCat("stage ", options.stage) : options.name;
}

std::string PeerName(const LinkOptions& link) {
  const std::string name =
      link.peer_name.empty() ? absl::StrCat("stage ", link.peer_stage) : link.peer_name;
  return absl::StrCat(name, " (", link.peer_node, " at ", link.peer_address, ")");
}

std::string FrameName(const FrameKey& key) {
  const bool once_a_step = key.kind == FrameKind::kNorms || key.kind == FrameKind::kVerdict ||
                           key.kind == FrameKind::kTiedGradient || key.kind == FrameKind::kTiedSum;
  std::string name = absl::StrCat(FrameKindName(key.kind), " of step ", key.step);
  if (!once_a_step) absl::StrAppend(&name, " micro-batch ", key.micro_batch);
  if (key.index != 0) absl::StrAppend(&name, " index ", key.index);
  return name;
}

}  // namespace longhaul::worker
