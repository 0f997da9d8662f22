#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "checkpoint/hugging_face_layout.h"

namespace longhaul::checkpoint {
namespace {

struct Part {
  const char* name;
  int64_t rows;
};

std::string NameOf(const std::string& name) {
  if (name == "head.weight") return "lm_head.weight";
  if (name == "embed") return "model.embed_tokens.weight";
  return absl::StrCat("model.",
                      absl::StrReplaceAll(name, {{".input_norm.", ".input_layernorm."},
                                                 {".post_norm.", ".post_attention_layernorm."},
                                                 {".attn.proj.", ".self_attn.o_proj."},
                                                 {".attn.qkv.", ".self_attn.qkv."},
                                                 {".mlp.down.", ".mlp.down_proj."}}));
}

// The rows of a packed parameter as tensors of their own; `packed` is the part of the name that
// theirs replace.
std::vector<StoredTensor> Split(const model::Parameter& parameter, const char* packed,
                                std::initializer_list<Part> parts) {
  std::vector<StoredTensor> tensors;
  const int64_t columns = parameter.elements() / parameter.shape[0];
  int64_t row = 0;
  for (const Part& part : parts) {
    StoredTensor& tensor = tensors.emplace_back();
    tensor.name = absl::StrReplaceAll(NameOf(parameter.name), {{packed, part.name}});
    tensor.shape = parameter.shape;
    tensor.shape[0] = part.rows;
    tensor.offset = row * columns;
    row += part.rows;
  }
  LH_CHECK(row == parameter.shape[0], parameter.name);
  return tensors;
}

}  // namespace

std::vector<StoredTensor> LlamaTensorsOf(const model::ModelSpec& spec,
                                         const model::Parameter& parameter) {
  const int64_t head_width = spec.hidden / spec.heads;
  if (absl::StrContains(parameter.name, ".attn.qkv.")) {
    return Split(parameter, ".qkv.",
                 {{".q_proj.", spec.heads * head_width},
                  {".k_proj.", spec.KvHeads() * head_width},
                  {".v_proj.", spec.KvHeads() * head_width}});
  }
  if (absl::StrContains(parameter.name, ".mlp.gate_up.")) {
    const int64_t width = parameter.shape[0] / 2;
    return Split(parameter, ".gate_up.", {{".gate_proj.", width}, {".up_proj.", width}});
  }
  StoredTensor tensor;
  tensor.name = NameOf(parameter.name);
  tensor.shape = parameter.shape;
  return {tensor};
}

}  // namespace longhaul::checkpoint
