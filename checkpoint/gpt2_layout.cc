#include "checkpoint/gpt2_layout.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace longhaul::checkpoint {
namespace {

bool IsConv1d(const std::string& name) {
  return absl::StrContains(name, ".c_attn.") || absl::StrContains(name, ".c_proj.") ||
         absl::StrContains(name, ".c_fc.");
}

std::string NameOf(const std::string& name) {
  if (name == "head.weight") return "lm_head.weight";
  if (name == "wte" || name == "wpe") return absl::StrCat("transformer.", name, ".weight");
  return absl::StrCat("transformer.", absl::StrReplaceAll(name, {{".attn.qkv.", ".attn.c_attn."},
                                                                 {".attn.proj.", ".attn.c_proj."},
                                                                 {".mlp.fc.", ".mlp.c_fc."},
                                                                 {".mlp.proj.", ".mlp.c_proj."}}));
}

}  // namespace

Gpt2Tensor Gpt2TensorOf(const model::Parameter& parameter) {
  Gpt2Tensor tensor;
  tensor.name = NameOf(parameter.name);
  tensor.shape = parameter.shape;
  if (tensor.shape.size() == 2 && IsConv1d(tensor.name)) {
    tensor.transposed = true;
    std::swap(tensor.shape[0], tensor.shape[1]);
  }
  return tensor;
}

void Transpose(absl::Span<const float> from, int64_t rows, int64_t columns, absl::Span<float> to) {
  LH_CHECK(static_cast<int64_t>(from.size()) == rows * columns && to.size() == from.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to[static_cast<size_t>(column * rows + row)] =
          from[static_cast<size_t>(row * columns + column)];
    }
  }
}

}  // namespace longhaul::checkpoint
