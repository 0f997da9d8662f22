#include "tests/bench/gpu/models.h"

namespace longhaul::gpu_check {
namespace {

model::ModelSpec Spec(bool llama) {
  model::ModelSpec spec{.layers = 12, .hidden = 768, .heads = 12, .context = 1024, .vocab = 50257};
  if (llama) {
    spec = {.family = "llama",
            .layers = 24,
            .hidden = 2048,
            .heads = 16,
            .context = 2048,
            .vocab = 32000};
    spec.ffn = 5504;
  }
  return spec;
}

model::ModelSpec TinySpec(bool llama) {
  model::ModelSpec spec{.layers = 1, .hidden = 16, .heads = 2, .context = 16, .vocab = 67};
  if (llama) {
    spec.family = "llama";
    spec.ffn = 24;
  }
  return spec;
}

BlockShape Block(const model::ModelSpec& spec, int64_t sequences) {
  return {.sequences = sequences,
          .context = spec.context,
          .hidden = spec.hidden,
          .heads = spec.heads,
          .ffn = spec.ffn > 0 ? spec.ffn : 4 * spec.hidden,
          .gated = spec.family == "llama",
          .vocab = spec.vocab};
}

}  // namespace

std::optional<CheckedModel> FindModel(absl::string_view name, bool tiny) {
  const bool llama = name == "llama";
  if (!llama && name != "gpt2") return std::nullopt;
  CheckedModel found;
  found.name = std::string(name);
  found.spec = tiny ? TinySpec(llama) : Spec(llama);
  found.micro_batch_max = tiny ? 1 : 8;
  found.peak_share = llama ? 0.45 : 0;
  found.full = Block(found.spec, tiny ? 2 : llama ? 4 : 8);
  found.reduced = found.full;
  if (!tiny) {
    found.reduced.sequences = 2;
    found.reduced.context = 128;
    found.reduced.vocab = found.spec.vocab / 8;
  }
  return found;
}

Effort EffortOf(bool tiny) {
  if (!tiny) return {};
  return {.copy_bytes = 1 << 16, .extent = 64, .flushed_bytes = 1 << 10, .repeats = 2};
}

}  // namespace longhaul::gpu_check
