// Private to checkpoint/: how Hugging Face's GPT-2 names and lays out our parameters.
#ifndef LONGHAUL_CHECKPOINT_GPT2_LAYOUT_H_
#define LONGHAUL_CHECKPOINT_GPT2_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/graph.h"

namespace longhaul::checkpoint {

inline constexpr char kGpt2ModelType[] = "gpt2";
inline constexpr char kGpt2Architecture[] = "GPT2LMHeadModel";
inline constexpr double kGpt2Epsilon = 1e-5;
inline constexpr char kConfigFile[] = "config.json";
inline constexpr char kWeightsFile[] = "model.safetensors";

// One parameter as Hugging Face stores it.
struct Gpt2Tensor {
  std::string name;            // "transformer.h.0.attn.c_attn.weight"
  std::vector<int64_t> shape;  // as stored
  bool transposed = false;     // Conv1D: stored [in, out], ours [out, in]
};

// `parameter` is one of a graph of the family gpt2.
Gpt2Tensor Gpt2TensorOf(const model::Parameter& parameter);

// from[rows, columns] -> to[columns, rows], row-major.
void Transpose(absl::Span<const float> from, int64_t rows, int64_t columns, absl::Span<float> to);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_GPT2_LAYOUT_H_
