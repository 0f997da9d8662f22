// Hugging Face's directory layout: config.json and model.safetensors.
#ifndef LONGHAUL_CHECKPOINT_HUGGING_FACE_H_
#define LONGHAUL_CHECKPOINT_HUGGING_FACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/family.h"

namespace longhaul::checkpoint {

// A model's weights, one vector for each parameter of the graph, in its order.
struct ModelWeights {
  model::ModelSpec spec;
  std::vector<std::vector<float>> parameters;
};

// The two files' contents. GPT-2's names ("transformer.h.0.attn.c_attn.weight"), Conv1D weights
// transposed to [in, out], lm_head.weight only when not tied. Deterministic.
struct HuggingFaceFiles {
  std::string config_json;
  std::string model_safetensors;
};
// InvalidArgument if the parameters' number or sizes are not those of the model.
absl::StatusOr<HuggingFaceFiles> ExportHuggingFace(const ModelWeights& weights);

// Refuses a `directory` that cannot be written: not a folder, no permission, in a folder that is
// not there (InvalidArgument), or not empty (AlreadyExists, unless `overwrite`). Leaves nothing
// behind.
absl::Status CheckExportTarget(const std::string& directory, bool overwrite);

// Writes both files into `directory`, which is created if it is not there, in a folder that is.
// Refuses what CheckExportTarget does. On an error nothing is left half-made, and with `overwrite`
// each old file is still there or wholly replaced.
absl::Status WriteHuggingFace(const HuggingFaceFiles& files, const std::string& directory,
                              bool overwrite);

// Reads a directory as written above, or as transformers saves such a model again. Refuses what
// would compute something else (another activation, scaling or dtype, unknown keys, tensors too
// many or too few, numbers that are not finite). Errors name file, key or tensor.
absl::StatusOr<ModelWeights> ImportHuggingFace(const std::string& directory);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_HUGGING_FACE_H_
