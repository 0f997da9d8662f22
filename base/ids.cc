#include "base/ids.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace longhaul {

std::string FrameKindName(FrameKind kind) {
  switch (kind) {
    case FrameKind::kActivation:
      return "activation";
    case FrameKind::kGradient:
      return "gradient";
    case FrameKind::kNorms:
      return "norms";
    case FrameKind::kVerdict:
      return "verdict";
    case FrameKind::kTiedGradient:
      return "tied-gradient";
    case FrameKind::kTiedSum:
      return "tied-sum";
    case FrameKind::kEvaluationActivation:
      return "evaluation-activation";
  }
  return absl::StrCat("kind-", static_cast<uint16_t>(kind));
}

std::string ToString(const Epoch& epoch) { return absl::StrCat(epoch.term, ".", epoch.number); }

std::string ToString(const FrameKey& key) {
  const auto unless_0 = [](absl::string_view name, uint32_t value) {
    return value == 0 ? "" : absl::StrCat(name, value);
  };
  return absl::StrCat("epoch ", ToString(key.epoch), unless_0(" pipeline ", key.pipeline), " step ",
                      key.step, " micro-batch ", key.micro_batch, " stage ", key.stage, " ",
                      FrameKindName(key.kind), unless_0(" index ", key.index));
}

absl::Status ValidateName(absl::string_view what, absl::string_view name) {
  constexpr size_t kLengthMax = 63;
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " '", absl::CHexEscape(name.substr(0, kLengthMax)), "' ", why, "; use 1 to ",
        kLengthMax, " letters, digits, '.', '_' or '-', beginning with a letter or digit"));
  };
  if (name.empty()) return refuse("is empty");
  if (name.size() > kLengthMax) return refuse(absl::StrCat("has ", name.size(), " characters"));
  if (!absl::ascii_isalnum(name[0])) return refuse("does not begin with a letter or digit");
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-') {
      return refuse("has a character that is not allowed");
    }
  }
  return absl::OkStatus();
}

}  // namespace longhaul
