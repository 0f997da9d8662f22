#include "model/hugging_face.h"

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "model/config_reader.h"

namespace longhaul::model {
namespace {

absl::StatusOr<ModelSpec> SpecOfConfig(const Json& config) {
  LH_ASSIGN_OR_RETURN(const std::string type, JsonText(config, "model_type"));
  if (type == "gpt2") return SpecOfGpt2Config(config);
  if (type == "llama" || type == "qwen2") return SpecOfLlamaConfig(config, type == "qwen2");
  return absl::InvalidArgumentError(
      absl::StrCat("'model_type' must be \"gpt2\", \"llama\" or \"qwen2\", not \"", type, "\""));
}

}  // namespace

absl::StatusOr<ModelSpec> SpecOfHuggingFace(absl::string_view config_json) {
  LH_ASSIGN_OR_RETURN(const Json config, ParseJson(config_json, kHuggingFaceConfigBytesMax));
  LH_ASSIGN_OR_RETURN(ModelSpec spec, SpecOfConfig(config));
  LH_RETURN_IF_ERROR(BuildGraph(spec).status());
  return spec;
}

std::string HuggingFaceConfig(const ModelSpec& spec) {
  return (spec.family == "gpt2" ? Gpt2Config(spec) : LlamaConfig(spec)).dump(2) + "\n";
}

}  // namespace longhaul::model
