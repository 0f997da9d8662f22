// One stage of the model on one device: parameters, gradients, optimizer state, activations of the
// micro-batches in flight, and the operators that act on them.
#ifndef LONGHAUL_COMPUTE_STAGE_STAGE_H_
#define LONGHAUL_COMPUTE_STAGE_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "compute/optim/adamw.h"
#include "model/graph.h"
#include "model/precision.h"

namespace longhaul::compute {

struct StageOptions {
  model::OpRange range;
  int64_t micro_batch = 0;
  int slots = 1;           // micro-batches in flight
  bool recompute = false;  // keep block boundaries only; Backward makes the rest again
  // The owner fills every parameter itself, from a checkpoint: zeros instead of initial values.
  bool weights_follow = false;
  // What operators compute in; the stage's state stays in floats. bf16: Stage<float> only.
  model::Precision precision = model::Precision::kFloat32;
};

// One micro-batch's forward.
struct ForwardPass {
  int slot = 0;
  // First and last stage: micro_batch * context entries, copied into the slot; else empty.
  absl::Span<const int32_t> tokens, targets;
  // Last stage: gets the sum over tokens, unless null, once the backend is synchronised.
  double* loss_sum = nullptr;
  // Which draws dropout takes; Backward takes the same. Without training nothing is dropped.
  int64_t step = 0;
  int64_t first_sequence = 0;  // of the micro-batch, in the global batch
  bool training = false;
};

// Where a stage first wrote what is no number: operators of the model, by position; -1: nowhere.
struct NotFinite {
  int forward = -1;   // the first whose output
  int backward = -1;  // the last, which backward comes to first, whose gradients
};

// A parameter held by this stage. Spans point into the stage.
template <typename T>
struct StageParameter {
  int index = 0;  // in Graph::parameters
  absl::Span<T> weights, first_moment, second_moment;
};

// One gradient accumulator: a use of a parameter by an operator of this stage.
template <typename T>
struct StageGradient {
  model::ParameterUse use;
  absl::Span<T> values;
};

// One thread at a time. Nothing is allocated after Create. Gradients are sums over tokens.
// T, the type of the stage's state, is float, or double for reference computations. On a device
// that is not the CPU the spans are device addresses, to be copied with the backend, and what is
// called is only queued: errors of the device may show at a later call, at the latest when the
// backend is synchronised.
template <typename T>
class Stage {
 public:
  // `graph` and `backend` must outlive the stage. Parameters start at their initial values for
  // `seed` (unless weights_follow): element e of parameter p depends on (seed, p, e) only. Dropout
  // draws by it too. FailedPrecondition if the backend cannot compute in this precision.
  static absl::StatusOr<std::unique_ptr<Stage>> Create(const model::Graph& graph,
                                                       const StageOptions& options,
                                                       Backend& backend, uint64_t seed);
  virtual ~Stage() = default;

  virtual bool is_first() const = 0;  // has the embedding: needs tokens
  virtual bool is_last() const = 0;   // has the loss: needs targets

  virtual absl::Span<StageParameter<T>> parameters() = 0;  // ascending by index
  // To be called after weights of parameters() were written.
  virtual absl::Status WeightsChanged() = 0;
  virtual absl::Span<StageGradient<T>> gradients() = 0;  // in operator order

  // Activations of slot `slot` over the stage's cuts (model::BoundaryElements). input: not on the
  // first stage; output: not on the last.
  virtual DeviceSpan input(int slot) = 0;
  virtual DeviceSpan output(int slot) const = 0;
  // Shared by all slots: gradient of the output, to be filled before Backward (a Forward in between
  // leaves it alone); gradient of the input, valid until the next Forward or Backward.
  virtual DeviceSpan output_gradient() = 0;
  virtual DeviceSpan input_gradient() const = 0;
  // Last stage: logits [rows, vocab] of the latest Forward, whose rows begin model::LogitsPitch
  // elements apart; valid until the next Forward or Backward.
  virtual DeviceSpan logits() const = 0;

  virtual absl::Status Forward(const ForwardPass& pass) = 0;
  // Adds to the accumulators. Once for each Forward: the slot's activations are used up.
  virtual absl::Status Backward(int slot) = 0;
  // In the next Backward alone, `watch` is called on its thread after each operator, the last
  // first: accumulators of uses by operators from `op` on get nothing more from it. Its error ends
  // the Backward.
  virtual void WatchBackward(std::function<absl::Status(int op)> watch) = 0;
  // From now on every Forward and Backward looks at what each operator writes and notes the nearest
  // to the cause in `found`, until it is null. Costs about a norm of all that is written.
  virtual void LookForNotFinite(NotFinite* found) = 0;
  virtual absl::Status ZeroGradients() = 0;

  // The gradient of a parameter summed over its uses here, in operator order: written into the
  // first use's accumulator.
  virtual absl::Status SumUses() = 0;
  // sums[i] gets that of the summed gradient of parameters()[i]. After SumUses. Waits.
  virtual absl::Status GradientSumsOfSquares(absl::Span<double> sums) = 0;
  // sums[i] gets that of the weights of parameters()[i]: finite if they all are. Waits.
  virtual absl::Status WeightSumsOfSquares(absl::Span<double> sums) = 0;
  // AdamW for every parameter; `step.weight_decay` applies to those that decay. After SumUses.
  virtual absl::Status ApplyAdamW(const AdamWStep& step) = 0;

  // Which kernel the stage's attention takes, as a person reads it; empty without attention.
  virtual const std::string& attention_kernel() const = 0;

  // What the stage was created with: for operators and copies on its spans.
  virtual Backend& backend() = 0;
};

template <>
absl::StatusOr<std::unique_ptr<Stage<float>>> Stage<float>::Create(const model::Graph& graph,
                                                                   const StageOptions& options,
                                                                   Backend& backend, uint64_t seed);
template <>
absl::StatusOr<std::unique_ptr<Stage<double>>> Stage<double>::Create(const model::Graph& graph,
                                                                     const StageOptions& options,
                                                                     Backend& backend,
                                                                     uint64_t seed);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_STAGE_H_
