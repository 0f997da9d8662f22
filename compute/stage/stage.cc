#include "compute/stage/stage.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "compute/optim/sum_of_squares.h"
#include "compute/stage/initialize.h"
#include "compute/stage/op_call.h"
#include "compute/stage/stage_arrays.h"

namespace longhaul::compute {
namespace {

using model::Graph;
using model::Op;
using model::OpRange;

template <typename T>
class GraphStage : public Stage<T> {
 public:
  GraphStage(const Graph& graph, const StageOptions& options, Backend& backend,
             StageArrays<T> arrays)
      : graph_(graph), range_(options.range), backend_(backend), arrays_(std::move(arrays)) {
    if (!is_first()) input_edge_ = graph.CutEdge(range_.begin);
    output_edge_ = is_last() ? graph.ops.back().inputs[0] : graph.CutEdge(range_.end);
  }

  absl::Status Initialize(uint64_t seed) {
    for (const StageParameter<T>& parameter : arrays_.parameters()) {
      LH_RETURN_IF_ERROR(InitializeParameter(backend_, graph_.parameters[parameter.index],
                                             parameter.index, seed, parameter.weights));
    }
    return absl::OkStatus();
  }

  bool is_first() const override { return model::HasEmbedding(range_); }
  bool is_last() const override { return model::HasLoss(graph_, range_); }

  absl::Span<StageParameter<T>> parameters() override { return arrays_.parameters(); }
  absl::Span<StageGradient<T>> gradients() override { return arrays_.gradients(); }

  absl::Span<T> input(int slot) override {
    LH_CHECK(!is_first(), "the first stage has tokens, no input");
    return arrays_.Value(input_edge_, slot);
  }
  absl::Span<const T> output(int slot) const override {
    LH_CHECK(!is_last(), "the last stage has logits, no output");
    return arrays_.Value(output_edge_, slot);
  }
  absl::Span<T> output_gradient() override {
    LH_CHECK(!is_last(), "the last stage makes its own gradient");
    return arrays_.Gradient(output_edge_, 0);
  }
  absl::Span<const T> input_gradient() const override {
    LH_CHECK(!is_first(), "tokens have no gradient");
    return arrays_.Gradient(input_edge_, 0);
  }
  absl::Span<const T> logits() const override {
    LH_CHECK(is_last(), "only the last stage has logits");
    return arrays_.Value(output_edge_, logits_slot_);
  }

  absl::Status Forward(int slot, absl::Span<const int32_t> tokens,
                       absl::Span<const int32_t> targets, double* loss_sum) override;
  absl::Status Backward(int slot) override;
  absl::Status ZeroGradients() override {
    auto& array = arrays_.gradient_array();
    return backend_.Zero(array.data(), static_cast<size_t>(array.bytes()));
  }

  absl::Status SumUses() override;
  absl::Status GradientSumOfSquares(int i, double* sum) override {
    return SumOfSquares<T>(backend_, SummedGradient(i), sum);
  }
  absl::Status ApplyAdamW(const AdamWStep& step) override;

  int64_t memory_bytes() const override { return arrays_.bytes(); }
  Backend& backend() override { return backend_; }

 private:
  absl::Span<T> SummedGradient(int i) {
    return arrays_.gradients()[arrays_.uses(i).front()].values;
  }
  absl::Status CopyIntegers(absl::Span<const int32_t> from, absl::Span<int32_t> to);
  absl::Status CollectContributions(int position);

  const Graph& graph_;
  const OpRange range_;
  Backend& backend_;
  StageArrays<T> arrays_;
  int input_edge_ = -1;
  int output_edge_ = -1;  // the logits on the last stage
  int logits_slot_ = 0;   // of the latest Forward
};

template <typename T>
absl::Status GraphStage<T>::CopyIntegers(absl::Span<const int32_t> from, absl::Span<int32_t> to) {
  LH_CHECK(from.size() == to.size(), "got ", from.size(), " tokens, a micro-batch has ", to.size());
  LH_RETURN_IF_ERROR(backend_.CopyToDevice(to.data(), from.data(), from.size() * sizeof(int32_t)));
  return backend_.Synchronize();  // the caller's memory is free again
}

template <typename T>
absl::Status GraphStage<T>::Forward(int slot, absl::Span<const int32_t> tokens,
                                    absl::Span<const int32_t> targets, double* loss_sum) {
  if (is_first()) LH_RETURN_IF_ERROR(CopyIntegers(tokens, arrays_.Tokens(slot)));
  if (is_last()) LH_RETURN_IF_ERROR(CopyIntegers(targets, arrays_.Targets(slot)));
  for (int position = range_.begin; position < range_.end; ++position) {
    OpCall<T> call = arrays_.ForwardCall(position, slot);
    call.loss_sum = loss_sum;
    LH_RETURN_IF_ERROR(ForwardOp(backend_, call));
  }
  logits_slot_ = slot;
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::Backward(int slot) {
  for (int position = range_.end - 1; position >= range_.begin; --position) {
    LH_RETURN_IF_ERROR(BackwardOp(backend_, arrays_.BackwardCall(position, slot)));
    LH_RETURN_IF_ERROR(CollectContributions(position));
  }
  return absl::OkStatus();
}

// Where an edge has several readers, its gradient is the sum of theirs, the last reader's first.
template <typename T>
absl::Status GraphStage<T>::CollectContributions(int position) {
  const auto& contributions = arrays_.plan().contributions[position];
  for (size_t i = 0; i < contributions.size(); ++i) {
    const model::GradientContribution& part = contributions[i];
    if (part.previous == model::BufferPlan::kAbsent) continue;
    const int edge = graph_.ops[position].inputs[i];
    LH_RETURN_IF_ERROR(Add<T>(backend_, arrays_.Scratch(part.previous, edge),
                              arrays_.Scratch(part.source, edge),
                              arrays_.Scratch(part.result, edge)));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::SumUses() {
  for (int i = 0; i < static_cast<int>(arrays_.parameters().size()); ++i) {
    const std::vector<int>& uses = arrays_.uses(i);
    const absl::Span<T> sum = SummedGradient(i);
    for (size_t use = 1; use < uses.size(); ++use) {
      LH_RETURN_IF_ERROR(Add<T>(backend_, sum, arrays_.gradients()[uses[use]].values, sum));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::ApplyAdamW(const AdamWStep& step) {
  for (int i = 0; i < static_cast<int>(arrays_.parameters().size()); ++i) {
    const StageParameter<T>& parameter = arrays_.parameters()[i];
    AdamWStep own = step;
    if (!graph_.parameters[parameter.index].decays) own.weight_decay = 0;
    LH_RETURN_IF_ERROR(AdamW<T>(backend_, own, SummedGradient(i), parameter.weights,
                                parameter.first_moment, parameter.second_moment));
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::StatusOr<std::unique_ptr<Stage<T>>> Stage<T>::Create(const Graph& graph,
                                                           const StageOptions& options,
                                                           Backend& backend, uint64_t seed) {
  LH_ASSIGN_OR_RETURN(StageArrays<T> arrays, StageArrays<T>::Allocate(graph, options, backend));
  auto stage = std::make_unique<GraphStage<T>>(graph, options, backend, std::move(arrays));
  LH_RETURN_IF_ERROR(stage->Initialize(seed));
  return stage;
}

template class Stage<float>;
template class Stage<double>;

}  // namespace longhaul::compute
