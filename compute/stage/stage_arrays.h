// All device memory of a stage and the map from graph to addresses.
#ifndef LONGHAUL_COMPUTE_STAGE_STAGE_ARRAYS_H_
#define LONGHAUL_COMPUTE_STAGE_STAGE_ARRAYS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "compute/stage/device_array.h"
#include "compute/stage/op_call.h"
#include "compute/stage/stage.h"
#include "model/buffer_plan.h"
#include "model/graph.h"

namespace longhaul::compute {

// When a value is looked for: in Forward, in the forward that Backward runs again, in the backward
// of an operator.
enum class Phase { kForward, kAgain, kBackward };

// Owns every allocation of a stage that computes in elements of type T, made once. Spans stay valid
// while it lives.
template <typename T>
class StageArrays {
 public:
  // `graph` and `backend` must outlive it. InvalidArgument if the options do not describe a stage
  // of the graph; ResourceExhausted if it does not fit.
  static absl::StatusOr<StageArrays> Allocate(const model::Graph& graph,
                                              const StageOptions& options, Backend& backend);

  absl::Span<StageParameter<Wide<T>>> parameters() { return absl::MakeSpan(parameters_); }
  // What operators read of parameters()[i]: its weights, or a copy of them in T.
  absl::Span<T> Working(int i) const { return working_[i]; }
  absl::Span<StageGradient<Wide<T>>> gradients() { return absl::MakeSpan(gradients_); }
  // Accumulators of parameters()[i], as positions in gradients(), in operator order.
  const std::vector<int>& uses(int i) const { return uses_[i]; }
  DeviceArray<Wide<T>>& gradient_array() { return gradient_array_; }

  // The stage's input and output for a slot, and their gradients.
  absl::Span<T> Input(int slot) const;
  absl::Span<T> Output(int slot) const;
  absl::Span<T> InputGradient() const;
  absl::Span<T> OutputGradient() const;

  // Value of an edge for a slot, wherever the plan put it for the phase.
  absl::Span<T> Value(int edge, int slot, Phase phase) const;
  // Gradient of an edge; the logits' shares the memory of their value.
  absl::Span<T> Gradient(int edge, int slot) const;
  // Part of scratch, of a slot, with the size of an edge.
  absl::Span<T> Scratch(int64_t offset, int edge) const;
  absl::Span<T> InSlot(int64_t offset, int edge, int slot) const;
  // Of the operator at `position`; empty where it has none.
  absl::Span<Wide<T>> Constants(int position) const;
  // Token ids; only on a stage with the embedding. Targets; only with the loss.
  absl::Span<int32_t> Tokens(int slot) const;
  absl::Span<int32_t> Targets(int slot) const;

  // The calls of the operator at `position`; loss_sum and draws are the caller's. `phase`: kForward
  // or kAgain.
  OpCall<T> ForwardCall(int position, int slot, Phase phase) const;
  OpCall<T> BackwardCall(int position, int slot) const;

  const model::BufferPlan& plan() const { return plan_; }

 private:
  StageArrays(const model::Graph& graph, const StageOptions& options)
      : graph_(&graph), options_(options) {}
  absl::Status AllocateArrays(Backend& backend);
  void PlaceParameters();
  void PlaceGradients();
  int64_t rows() const { return options_.micro_batch * graph_->context; }
  int64_t Elements(int edge) const {
    return model::EdgeElements(*graph_, edge, options_.micro_batch, options_.precision);
  }
  // What the operator has in every phase.
  OpCall<T> CommonCall(int position, int slot, Phase phase) const;
  absl::Span<T> PartOfSlot(int64_t offset, int64_t elements, int slot) const;
  absl::Span<Wide<T>> Statistics(int position, int slot, Phase phase) const;
  absl::Span<Wide<T>> Workspace(int64_t offset, int position) const;

  const model::Graph* graph_;
  StageOptions options_;
  model::BufferPlan plan_;
  int64_t input_elements_ = 0, output_elements_ = 0;
  std::vector<StageParameter<Wide<T>>> parameters_;
  std::vector<absl::Span<T>> working_;  // by position in parameters_
  std::vector<StageGradient<Wide<T>>> gradients_;
  std::vector<std::vector<int>> uses_;   // by position in parameters_
  std::vector<int> parameter_position_;  // by parameter of the graph: position in parameters_
  std::vector<int> first_gradient_;      // by operator of the graph: position in gradients_
  DeviceArray<Wide<T>> weights_, first_moments_, second_moments_, gradient_array_, constants_;
  DeviceArray<T> slots_, scratch_;
  DeviceArray<T> working_array_;  // where T is not the weights' type
  DeviceArray<int32_t> integers_;
};

extern template class StageArrays<float>;
extern template class StageArrays<double>;
extern template class StageArrays<BFloat16>;

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_STAGE_ARRAYS_H_
