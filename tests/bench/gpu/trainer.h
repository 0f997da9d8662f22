// A whole model on one device, and steps on it.
#ifndef LONGHAUL_TESTS_BENCH_GPU_TRAINER_H_
#define LONGHAUL_TESTS_BENCH_GPU_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compute/backend/backend.h"
#include "compute/stage/stage.h"
#include "model/family.h"
#include "model/precision.h"

namespace longhaul::gpu_check {

struct TrainerOptions {
  model::ModelSpec spec;
  int64_t micro_batch = 0;
  int micro_batches = 1;  // of a step, one after the other
  bool recompute = false;
  model::Precision precision = model::Precision::kFloat32;
  double learning_rate = 1e-4;
  // Weights from repeated random numbers that are made at once instead of the model's own, which
  // take the processor a minute for a model of this size.
  bool quick_weights = false;
};

// Tokens of one micro-batch and what follows each.
struct TokenBatch {
  std::vector<int32_t> tokens, targets;
};

// Must not outlive the backend.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(const TrainerOptions& options,
                                                       compute::Backend& backend);

  // One step on the micro-batches: gradients, their norm clipped to 1, AdamW. Waits; returns the
  // mean loss of a token before it.
  absl::StatusOr<double> Step(const std::vector<TokenBatch>& batches);

  // FLOPs that one token costs: 6 for each weight of a product (Kaplan et al. 2020, section 2.1)
  // and 12 * layers * hidden * context for attention (Chowdhery et al. 2022, appendix B).
  double FlopsOfToken() const;

  const std::string& attention_kernel() const { return stage_->attention_kernel(); }
  const model::Graph& graph() const { return graph_; }
  int64_t tokens() const { return options_.micro_batch * options_.spec.context; }  // micro-batch

 private:
  Trainer(const TrainerOptions& options, compute::Backend& backend)
      : options_(options), backend_(backend) {}
  absl::Status FillQuickly();

  const TrainerOptions options_;
  compute::Backend& backend_;
  model::Graph graph_;
  std::unique_ptr<compute::Stage<float>> stage_;
  std::vector<double> sums_;
  int64_t step_ = 0;
};

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_TRAINER_H_
