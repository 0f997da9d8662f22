#include "compute/backend/cuda/fused_attention.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longhaul::compute::cuda {
namespace {

constexpr int64_t kWidthStep = 8, kWidthMax = 256;  // of heads
constexpr uintptr_t kAlignBytes = 16;

}  // namespace

absl::StatusOr<AttentionPlan*> AttentionChoice::For(Element element,
                                                    const AttentionExtents& extents) {
  if (library_ == nullptr || element != Element::kBFloat16 ||
      extents.head_width % kWidthStep != 0 || extents.head_width > kWidthMax) {
    return nullptr;
  }
  const auto kept = plans_.find(extents);
  if (kept != plans_.end()) return kept->second.get();
  LH_ASSIGN_OR_RETURN(std::unique_ptr<AttentionPlan> plan, library_->Plan(extents));
  return plans_.emplace(extents, std::move(plan)).first->second.get();
}

absl::StatusOr<std::string> AttentionChoice::NameFor(Element element,
                                                     const AttentionExtents& extents) {
  LH_ASSIGN_OR_RETURN(const AttentionPlan* const plan, For(element, extents));
  if (plan == nullptr) return "own";
  return absl::StrCat(library_->name(), plan->is_deterministic() ? ", deterministic" : "");
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
