#include "tests/bench/gpu/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "base/status_macros.h"

namespace longhaul::gpu_check {
namespace {

constexpr uint64_t kSeed = 1;

std::vector<float> NormalNumbers(size_t count) {
  std::vector<float> values;
  for (size_t i = 0; values.size() < count; ++i) {
    for (const double number :
         RandomNormalPair(RandomBits(kSeed, RandomStream::kInitialWeights, 0, 0, i))) {
      values.push_back(static_cast<float>(number));
    }
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Make(const TrainerOptions& options,
                                                       compute::Backend& backend) {
  std::unique_ptr<Trainer> trainer(new Trainer(options, backend));
  LH_ASSIGN_OR_RETURN(trainer->graph_, model::BuildGraph(options.spec));
  const compute::StageOptions stage{.range = {0, static_cast<int>(trainer->graph_.ops.size())},
                                    .micro_batch = options.micro_batch,
                                    .recompute = options.recompute,
                                    .weights_follow = options.quick_weights,
                                    .precision = options.precision};
  LH_ASSIGN_OR_RETURN(trainer->stage_,
                      compute::Stage<float>::Create(trainer->graph_, stage, backend, kSeed));
  trainer->sums_.resize(trainer->stage_->parameters().size());
  if (options.quick_weights) LH_RETURN_IF_ERROR(trainer->FillQuickly());
  LH_RETURN_IF_ERROR(backend.Synchronize());
  return trainer;
}

absl::Status Trainer::FillQuickly() {
  const std::vector<float> numbers = NormalNumbers(100'003);
  for (const compute::StageParameter<float>& parameter : stage_->parameters()) {
    const model::Initializer& init = graph_.parameters[parameter.index].init;
    std::vector<float> values(std::min(numbers.size(), parameter.weights.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = init.kind == model::InitKind::kNormal
                      ? numbers[i] * static_cast<float>(init.standard_deviation)
                      : (init.kind == model::InitKind::kOnes ? 1.0f : 0.0f);
    }
    float* const to = parameter.weights.data();
    LH_RETURN_IF_ERROR(backend_.Upload(to, values.data(), values.size() * sizeof(float)));
    for (size_t at = values.size(); at < parameter.weights.size(); at += values.size()) {
      const size_t count = std::min(values.size(), parameter.weights.size() - at);
      LH_RETURN_IF_ERROR(backend_.Copy(to + at, to, count * sizeof(float)));
    }
  }
  return stage_->WeightsChanged();
}

absl::StatusOr<double> Trainer::Step(const std::vector<TokenBatch>& batches) {
  std::vector<double> losses(batches.size());
  LH_RETURN_IF_ERROR(stage_->ZeroGradients());
  ++step_;
  for (size_t m = 0; m < batches.size(); ++m) {
    const int64_t sequence = static_cast<int64_t>(m) * options_.micro_batch;
    LH_RETURN_IF_ERROR(stage_->Forward(
        {0, batches[m].tokens, batches[m].targets, &losses[m], step_, sequence, true}));
    LH_RETURN_IF_ERROR(stage_->Backward(0));
  }
  LH_RETURN_IF_ERROR(stage_->SumUses());
  LH_RETURN_IF_ERROR(stage_->GradientSumsOfSquares(absl::MakeSpan(sums_)));
  const double count = static_cast<double>(tokens()) * static_cast<double>(batches.size());
  const double norm = std::sqrt(std::accumulate(sums_.begin(), sums_.end(), 0.0)) / count;
  LH_RETURN_IF_ERROR(stage_->ApplyAdamW({.learning_rate = options_.learning_rate,
                                         .weight_decay = 0.1,
                                         .gradient_scale = 1 / (count * std::max(norm, 1.0)),
                                         .step = step_}));
  LH_RETURN_IF_ERROR(backend_.Synchronize());
  return std::accumulate(losses.begin(), losses.end(), 0.0) / count;
}

double Trainer::FlopsOfToken() const {
  double flops = 12.0 * static_cast<double>(options_.spec.layers * options_.spec.hidden) *
                 static_cast<double>(options_.spec.context);
  for (const model::Op& op : graph_.ops) {
    if (op.kind != model::OpKind::kLinear) continue;
    for (const int parameter : op.parameters) {
      const model::Parameter& weight = graph_.parameters[parameter];
      if (weight.shape.size() == 2) flops += 6.0 * static_cast<double>(weight.elements());
    }
  }
  return flops;
}

}  // namespace longhaul::gpu_check
