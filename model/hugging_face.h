// Hugging Face's config.json as a ModelSpec, and back.
#ifndef LONGHAUL_MODEL_HUGGING_FACE_H_
#define LONGHAUL_MODEL_HUGGING_FACE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/family.h"

namespace longhaul::model {

// Longest config.json that is read.
inline constexpr size_t kHuggingFaceConfigBytesMax = 1 << 20;

// GPT-2, Llama and Qwen2 ("model_type"), as transformers 4 and 5 write them: the rotary embedding
// as "rope_theta" with "rope_scaling", or as "rope_parameters". Refuses what would compute
// something else: InvalidArgument names the key, its value and what would be right; keys that are
// not known are refused too. Dropout is not taken over: it says how a model was trained.
absl::StatusOr<ModelSpec> SpecOfHuggingFace(absl::string_view config_json);

// The config.json of a model of a family: GPT2LMHeadModel, LlamaForCausalLM, or Qwen2ForCausalLM
// where q, k and v have biases; in the spelling that transformers 4 and 5 both read. `spec` must
// build.
std::string HuggingFaceConfig(const ModelSpec& spec);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_HUGGING_FACE_H_
