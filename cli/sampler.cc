#include "cli/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "data/batches.h"
#include "model/family.h"

namespace longhaul::cli {

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Create(const checkpoint::ModelWeights& weights,
                                                         int threads) {
  auto sampler = std::unique_ptr<Sampler>(new Sampler);
  LH_ASSIGN_OR_RETURN(sampler->graph_, model::BuildGraph(weights.spec));
  sampler->backend_ = compute::MakeCpuBackend(threads);
  compute::StageOptions options;
  options.range = {0, static_cast<int>(sampler->graph_.ops.size())};
  options.micro_batch = 1;
  options.weights_follow = true;
  LH_ASSIGN_OR_RETURN(sampler->stage_, compute::Stage<float>::Create(sampler->graph_, options,
                                                                     *sampler->backend_, 0));
  for (const compute::StageParameter<float>& parameter : sampler->stage_->parameters()) {
    const std::vector<float>& source = weights.parameters[parameter.index];
    LH_CHECK(source.size() == parameter.weights.size());
    std::copy(source.begin(), source.end(), parameter.weights.begin());
  }
  return sampler;
}

absl::Status Sampler::Forward(absl::Span<const int32_t> tokens) {
  const size_t context = static_cast<size_t>(graph_.context);
  if (tokens.empty() || tokens.size() > context) {
    return absl::InvalidArgumentError(
        absl::StrCat("1 to ", context, " tokens fit into the context, not ", tokens.size()));
  }
  // Attention is causal, so what stands behind the last token does not matter.
  std::vector<int32_t> padded(tokens.begin(), tokens.end());
  padded.resize(context, 0);
  const std::vector<int32_t> targets(context, kIgnoredTarget);
  return stage_->Forward({.slot = 0, .tokens = padded, .targets = targets});
}

absl::StatusOr<std::vector<float>> Sampler::Logits(absl::Span<const int32_t> tokens) {
  LH_RETURN_IF_ERROR(Forward(tokens));
  const auto rows =
      stage_->logits().As<float>().first(tokens.size() * static_cast<size_t>(graph_.vocab));
  return std::vector<float>(rows.begin(), rows.end());
}

absl::StatusOr<int32_t> Sampler::Next(absl::Span<const int32_t> tokens,
                                      const SamplingOptions& options, uint64_t position) {
  const size_t vocab = static_cast<size_t>(graph_.vocab);
  const size_t used = std::min(tokens.size(), static_cast<size_t>(graph_.context));
  LH_RETURN_IF_ERROR(Forward(tokens.subspan(tokens.size() - used)));
  const auto logits = stage_->logits().As<float>().subspan((used - 1) * vocab, vocab);
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model's logits after ", used, " tokens are not finite: its training diverged"));
  }
  const auto bits = RandomBits(options.seed, RandomStream::kSampling, 0, 0, position);
  return DrawToken(logits, options, static_cast<double>(bits[0]) * 0x1p-32);
}

int32_t DrawToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform) {
  LH_CHECK(!logits.empty());
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (options.temperature <= 0) return order[0];
  const size_t kept =
      options.top_k > 0 ? std::min(order.size(), static_cast<size_t>(options.top_k)) : order.size();
  std::vector<double> weights(kept);
  for (size_t i = 0; i < kept; ++i) {
    weights[i] =
        std::exp((static_cast<double>(logits[order[i]]) - logits[order[0]]) / options.temperature);
  }
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < kept; ++i) {
    if (left < weights[i]) return order[i];
    left -= weights[i];
  }
  return order[kept - 1];
}

}  // namespace longhaul::cli
