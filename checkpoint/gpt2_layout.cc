#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "checkpoint/hugging_face_layout.h"

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

StoredTensor Gpt2TensorOf(const model::Parameter& parameter) {
  StoredTensor tensor;
  tensor.name = NameOf(parameter.name);
  tensor.shape = parameter.shape;
  if (tensor.shape.size() == 2 && IsConv1d(tensor.name)) {
    tensor.transposed = true;
    std::swap(tensor.shape[0], tensor.shape[1]);
  }
  return tensor;
}

}  // namespace longhaul::checkpoint
