#include "compute/backend/cuda/fused_attention.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace longhaul::compute::cuda {
namespace {

constexpr int64_t kWidthStep = 8, kWidthMax = 256;  // of heads
constexpr uintptr_t kAlignBytes = 16;

bool IsForLibrary(Element element, const AttentionExtents& extents) {
  return element == Element::kBFloat16 && extents.head_width % kWidthStep == 0 &&
         extents.head_width <= kWidthMax;
}

}  // namespace

AttentionChoice::AttentionChoice(absl::StatusOr<std::unique_ptr<FusedAttention>> library)
    : why_none_(library.status()) {
  if (library.ok()) library_ = *std::move(library);
}

const AttentionChoice::Answer& AttentionChoice::Ask(const AttentionExtents& extents) {
  const auto kept = plans_.find(extents);
  if (kept != plans_.end()) return kept->second;
  Answer answer = library_ == nullptr ? Answer(why_none_) : library_->Plan(extents);
  return plans_.emplace(extents, std::move(answer)).first->second;
}

AttentionPlan* AttentionChoice::For(Element element, const AttentionExtents& extents) {
  if (!IsForLibrary(element, extents)) return nullptr;
  const Answer& answer = Ask(extents);
  return answer.ok() ? answer->get() : nullptr;
}

std::string AttentionChoice::NameFor(Element element, const AttentionExtents& extents) {
  if (!IsForLibrary(element, extents)) return "own";
  const Answer& answer = Ask(extents);
  if (!answer.ok()) return absl::StrCat("own (", answer.status().message(), ")");
  return absl::StrCat(library_->name(), (*answer)->is_deterministic() ? ", deterministic" : "");
}

bool IsForLibrary(const AttentionMemory& memory) {
  for (const void* const part :
       {static_cast<const void*>(memory.qkv), static_cast<const void*>(memory.output),
        static_cast<const void*>(memory.lse), static_cast<const void*>(memory.output_gradient),
        static_cast<const void*>(memory.qkv_gradient)}) {
    if (reinterpret_cast<uintptr_t>(part) % kAlignBytes != 0) return false;
  }
  return true;
}

}  // namespace longhaul::compute::cuda
