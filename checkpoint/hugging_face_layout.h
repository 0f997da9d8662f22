// Private to checkpoint/: how Hugging Face names and lays out our parameters.
#ifndef LONGHAUL_CHECKPOINT_HUGGING_FACE_LAYOUT_H_
#define LONGHAUL_CHECKPOINT_HUGGING_FACE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/family.h"
#include "model/graph.h"

namespace longhaul::checkpoint {

inline constexpr char kConfigFile[] = "config.json";
inline constexpr char kGraphFile[] = "graph.json";
inline constexpr char kWeightsFile[] = "model.safetensors";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";

// One tensor as Hugging Face stores it: a whole parameter of ours, or some of its rows.
struct StoredTensor {
  std::string name;            // "model.layers.0.self_attn.k_proj.weight"
  std::vector<int64_t> shape;  // as stored
  int parameter = 0;           // in the graph
  int64_t offset = 0;          // its first element in the parameter
  bool transposed = false;     // GPT-2's Conv1D: stored [in, out], ours [out, in]; then all of it
  int64_t elements() const;
};

// The tensors of a model, in the order of the graph's parameters, which they cover exactly: those
// of GPT2LMHeadModel, of LlamaForCausalLM and Qwen2ForCausalLM, or under its own names those of a
// user's graph. `graph` is that of `spec`.
std::vector<StoredTensor> StoredTensors(const model::ModelSpec& spec, const model::Graph& graph);

// Tensors that old files hold beside these and that transformers ignores: attention masks and
// rotary frequencies, which are computed.
bool IsComputedTensor(absl::string_view name);

// A tensor of these families.
StoredTensor Gpt2TensorOf(const model::Parameter& parameter);
// One, or for q | k | v and gate | up one for each part.
std::vector<StoredTensor> LlamaTensorsOf(const model::ModelSpec& spec,
                                         const model::Parameter& parameter);

// from[rows, columns] -> to[columns, rows], row-major.
void Transpose(absl::Span<const float> from, int64_t rows, int64_t columns, absl::Span<float> to);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_HUGGING_FACE_LAYOUT_H_
