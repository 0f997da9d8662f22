// Hugging Face's directory layout: config.json and safetensors files; and beside it the same for
// users' graphs, with graph.json in place of config.json.
#ifndef LONGHAUL_CHECKPOINT_HUGGING_FACE_H_
#define LONGHAUL_CHECKPOINT_HUGGING_FACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/file_pieces.h"
#include "model/family.h"

namespace longhaul::checkpoint {

// A model's weights, one vector for each parameter of the graph, in its order.
struct ModelWeights {
  model::ModelSpec spec;
  std::vector<std::vector<float>> parameters;
};

// A file that is passed through as it is: the tokenizer's.
struct PassedFile {
  std::string name;  // IsPassedFile
  std::string bytes;
};

// What an export writes. Deterministic.
struct HuggingFaceFiles {
  std::string config_json;       // of a family; empty for a user's graph
  FilePieces model_safetensors;  // float32; owns the weights, and makes a tensor at a time of them
  std::string graph_json = "";   // of a user's graph (docs/formats.md); empty for a family
  std::vector<PassedFile> passed = {};
};
// Families: names and layouts of GPT2LMHeadModel (Conv1D weights transposed to [in, out]),
// LlamaForCausalLM or Qwen2ForCausalLM (q, k, v, gate and up apart); lm_head.weight only when not
// tied. A user's graph: its parameters under their own names. InvalidArgument if the parameters'
// number or sizes are not those of the model.
absl::StatusOr<HuggingFaceFiles> ExportHuggingFace(ModelWeights weights);

// Refuses a `directory` that cannot be written: not a folder, no permission, in a folder that is
// not there (InvalidArgument), or not empty (AlreadyExists, unless `overwrite`). Leaves nothing
// behind.
absl::Status CheckExportTarget(const std::string& directory, bool overwrite);

// Writes the files into `directory`, which is created if it is not there, in a folder that is.
// Refuses what CheckExportTarget does. On an error nothing is left half-made, and with `overwrite`
// each old file is still there or wholly replaced; a config.json or graph.json of another kind of
// model, which would contradict the new one, is removed.
absl::Status WriteHuggingFace(const HuggingFaceFiles& files, const std::string& directory,
                              bool overwrite);

// What a directory's config.json, or graph.json, says. Errors name the file and the key.
absl::StatusOr<model::ModelSpec> ReadHuggingFaceSpec(const std::string& directory);

// Reads a directory as written above, or as transformers saves such a model: model.safetensors, or
// the files that model.safetensors.index.json names; F32, F16 and BF16, each value exactly.
// `context`: fewer positions than the configuration says (learned ones are cut off); 0: all.
// Refuses what would compute something else (model/hugging_face.h), tensors too many, too few, of
// another shape or dtype, or doubled, numbers that are not finite, and files outside the directory.
// Errors name file, key or tensor.
absl::StatusOr<ModelWeights> ImportHuggingFace(const std::string& directory, int64_t context = 0);

// --- tokenizers, which only pass through ---

inline constexpr uint64_t kPassedFileBytesMax = uint64_t{64} << 20;

// Whether a file of this name is passed through: tokenizer.json and its like.
bool IsPassedFile(absl::string_view name);
// Names of those that are in a directory. InvalidArgument for one that is too long or no file.
absl::StatusOr<std::vector<std::string>> FindPassedFiles(const std::string& directory);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_HUGGING_FACE_H_
