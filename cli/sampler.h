// Text from a model: one token after another.
#ifndef LONGHAUL_CLI_SAMPLER_H_
#define LONGHAUL_CLI_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "checkpoint/hugging_face.h"
#include "compute/backend/backend.h"
#include "compute/stage/stage.h"
#include "model/graph.h"

namespace longhaul::cli {

struct SamplingOptions {
  double temperature = 0.8;  // 0: always the likeliest token
  int top_k = 40;            // 0: all tokens
  uint64_t seed = 1;
};

// One thread. Holds the whole model as a single stage.
class Sampler {
 public:
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const checkpoint::ModelWeights& weights,
                                                         int threads);

  // Logits [vocab] after each of `tokens`, which fit into the context: [tokens, vocab].
  absl::StatusOr<std::vector<float>> Logits(absl::Span<const int32_t> tokens);

  // The token that follows `tokens` (of which the last `context` count); `position` numbers the
  // draw. The same arguments give the same token. FailedPrecondition if the model gives numbers
  // that are not finite.
  absl::StatusOr<int32_t> Next(absl::Span<const int32_t> tokens, const SamplingOptions& options,
                               uint64_t position);

  const model::Graph& graph() const { return graph_; }

 private:
  Sampler() = default;
  absl::Status Forward(absl::Span<const int32_t> tokens);

  model::Graph graph_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<compute::Stage<float>> stage_;
};

// Draws from softmax(logits / temperature), all finite, over the top_k likeliest; `uniform` in [0,
// 1) decides.
int32_t DrawToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_SAMPLER_H_
