#include "compute/stage/stage_arrays.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "model/cost.h"
#include "model/limits.h"

namespace longhaul::compute {
namespace {

using model::Graph;
using model::Op;
using model::OpRange;
using model::Padded;

constexpr int64_t kAbsent = model::BufferPlan::kAbsent;

// Elements of slots and scratch that a statistic takes.
template <typename T>
constexpr int64_t kElementsOfWide = sizeof(Wide<T>) / sizeof(T);

// Parts of slots and scratch begin at multiples of kAlignElements.
template <typename T>
absl::Span<Wide<T>> AsWide(absl::Span<T> part) {
  return absl::MakeSpan(reinterpret_cast<Wide<T>*>(part.data()), part.size() / kElementsOfWide<T>);
}

absl::Status CheckOptions(const Graph& graph, const StageOptions& options) {
  const OpRange range = options.range;
  const int end = static_cast<int>(graph.ops.size());
  const std::vector<int> cuts = graph.CutPoints();
  const auto is_cut = [&](int position) {
    return std::binary_search(cuts.begin(), cuts.end(), position);
  };
  if (range.begin >= range.end || (range.begin != 0 && !is_cut(range.begin)) ||
      (range.end != end && !is_cut(range.end))) {
    return absl::InvalidArgumentError(
        absl::StrCat("operators ", range.begin, " to ", range.end,
                     " are no stage of this model: it may not be cut there"));
  }
  if (options.slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a stage needs at least one slot, not ", options.slots));
  }
  const int64_t micro_batch_max = model::kRowsMax / graph.context;
  if (options.micro_batch < 1 || options.micro_batch > micro_batch_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a micro-batch of ", options.micro_batch, " sequences is out of range; with context ",
        graph.context, " it must be from 1 to ", micro_batch_max));
  }
  const int64_t bytes = model::MemoryOf(graph, range, options.micro_batch, options.slots,
                                        options.recompute, options.precision)
                            .total();
  if (bytes < model::kBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("operators ", range.begin, " to ", range.end, " with ", options.slots,
                   " micro-batches in flight need at least ", bytes, " bytes"));
}

// The plan was made without the operators' code; what they ask for must be what it provides.
void CheckWorkspaces(const Graph& graph, const StageOptions& options) {
  for (int position = options.range.begin; position < options.range.end; ++position) {
    const Op& op = graph.ops[position];
    const int64_t planned = model::WorkspaceElements(graph, op, options.micro_batch);
    const int64_t needed = WorkspaceOf(graph, op, options.micro_batch);
    LH_CHECK(planned == needed, op.name, " needs ", needed, " elements, planned are ", planned);
  }
}

}  // namespace

template <typename T>
absl::StatusOr<StageArrays<T>> StageArrays<T>::Allocate(const Graph& graph,
                                                        const StageOptions& options,
                                                        Backend& backend) {
  LH_RETURN_IF_ERROR(CheckOptions(graph, options));
  CheckWorkspaces(graph, options);
  StageArrays arrays(graph, options);
  const auto elements_at = [&](int position) {
    return model::BoundaryElements(graph, position, options.micro_batch);
  };
  if (!model::HasEmbedding(options.range))
    arrays.input_elements_ = elements_at(options.range.begin);
  if (!model::HasLoss(graph, options.range))
    arrays.output_elements_ = elements_at(options.range.end);
  arrays.plan_ = model::PlanBuffers(graph, options.range, options.micro_batch, options.recompute,
                                    options.precision);
  LH_RETURN_IF_ERROR(Annotate(
      arrays.AllocateArrays(backend),
      absl::StrCat("memory for operators ", options.range.begin, " to ", options.range.end)));
  arrays.PlaceParameters();
  arrays.PlaceGradients();
  return arrays;
}

template <typename T>
absl::Status StageArrays<T>::AllocateArrays(Backend& backend) {
  const OpRange range = options_.range;
  int64_t weight_elements = 0, gradient_elements = 0;
  for (int index : graph_->ParametersOf(range)) {
    weight_elements += Padded(graph_->parameters[index].elements());
  }
  for (const model::ParameterUse& use : graph_->Uses(range)) {
    gradient_elements += Padded(graph_->parameters[use.parameter].elements());
  }
  for (auto* array : {&weights_, &first_moments_, &second_moments_}) {
    LH_ASSIGN_OR_RETURN(*array, DeviceArray<Wide<T>>::Allocate(backend, weight_elements));
  }
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    LH_ASSIGN_OR_RETURN(working_array_, DeviceArray<T>::Allocate(backend, weight_elements));
  }
  LH_ASSIGN_OR_RETURN(gradient_array_, DeviceArray<Wide<T>>::Allocate(backend, gradient_elements));
  LH_ASSIGN_OR_RETURN(slots_,
                      DeviceArray<T>::Allocate(backend, options_.slots * plan_.slot_elements));
  LH_ASSIGN_OR_RETURN(scratch_, DeviceArray<T>::Allocate(backend, plan_.scratch_elements));
  LH_ASSIGN_OR_RETURN(constants_, DeviceArray<Wide<T>>::Allocate(backend, plan_.constant_elements));
  LH_ASSIGN_OR_RETURN(
      integers_, DeviceArray<int32_t>::Allocate(backend, options_.slots * plan_.slot_integers));
  return absl::OkStatus();
}

template <typename T>
void StageArrays<T>::PlaceParameters() {
  parameter_position_.assign(graph_->parameters.size(), -1);
  int64_t offset = 0;
  for (int index : graph_->ParametersOf(options_.range)) {
    const int64_t elements = graph_->parameters[index].elements();
    parameter_position_[index] = static_cast<int>(parameters_.size());
    parameters_.push_back({index, weights_.Part(offset, elements),
                           first_moments_.Part(offset, elements),
                           second_moments_.Part(offset, elements)});
    if constexpr (std::is_same_v<T, Wide<T>>) {
      working_.push_back(parameters_.back().weights);
    } else {
      working_.push_back(working_array_.Part(offset, elements));
    }
    offset += Padded(elements);
  }
}

template <typename T>
void StageArrays<T>::PlaceGradients() {
  first_gradient_.assign(graph_->ops.size(), -1);
  uses_.resize(parameters_.size());
  int64_t offset = 0;
  for (const model::ParameterUse& use : graph_->Uses(options_.range)) {
    const int64_t elements = graph_->parameters[use.parameter].elements();
    const int position = static_cast<int>(gradients_.size());
    if (first_gradient_[use.op] < 0) first_gradient_[use.op] = position;
    uses_[parameter_position_[use.parameter]].push_back(position);
    gradients_.push_back({use, gradient_array_.Part(offset, elements)});
    offset += Padded(elements);
  }
}

template <typename T>
absl::Span<T> StageArrays<T>::PartOfSlot(int64_t offset, int64_t elements, int slot) const {
  LH_CHECK(slot >= 0 && slot < options_.slots, "slot ", slot, " of ", options_.slots);
  return slots_.Part(slot * plan_.slot_elements + offset, elements);
}

template <typename T>
absl::Span<T> StageArrays<T>::Input(int slot) const {
  return PartOfSlot(plan_.input, input_elements_, slot);
}

template <typename T>
absl::Span<T> StageArrays<T>::Output(int slot) const {
  return PartOfSlot(plan_.output, output_elements_, slot);
}

template <typename T>
absl::Span<T> StageArrays<T>::InputGradient() const {
  return scratch_.Part(plan_.input_gradient, input_elements_);
}

template <typename T>
absl::Span<T> StageArrays<T>::OutputGradient() const {
  return scratch_.Part(plan_.output_gradient, output_elements_);
}

template <typename T>
absl::Span<T> StageArrays<T>::InSlot(int64_t offset, int edge, int slot) const {
  return PartOfSlot(offset, Elements(edge), slot);
}

template <typename T>
absl::Span<Wide<T>> StageArrays<T>::Constants(int position) const {
  const int64_t offset = plan_.constants[position];
  if (offset == kAbsent) return {};
  return constants_.Part(offset, model::ConstantElements(*graph_, graph_->ops[position]));
}

// In backward a value that was not made again has its place of forward: nobody reads it, but its
// size says the operator's shape.
template <typename T>
absl::Span<T> StageArrays<T>::Value(int edge, int slot, Phase phase) const {
  if (plan_.slot_edge[edge] != kAbsent) return InSlot(plan_.slot_edge[edge], edge, slot);
  if (phase != Phase::kForward && plan_.again_edge[edge] != kAbsent) {
    return Scratch(plan_.again_edge[edge], edge);
  }
  return Scratch(plan_.scratch_edge[edge], edge);
}

template <typename T>
absl::Span<T> StageArrays<T>::Gradient(int edge, int slot) const {
  const int64_t offset = plan_.gradient_edge[edge];
  return offset == kAbsent ? Value(edge, slot, Phase::kBackward) : Scratch(offset, edge);
}

template <typename T>
absl::Span<T> StageArrays<T>::Scratch(int64_t offset, int edge) const {
  return scratch_.Part(offset, Elements(edge));
}

template <typename T>
absl::Span<int32_t> StageArrays<T>::Tokens(int slot) const {
  LH_CHECK(model::HasEmbedding(options_.range), "a stage without embedding has no tokens");
  LH_CHECK(slot >= 0 && slot < options_.slots, "slot ", slot, " of ", options_.slots);
  return integers_.Part(slot * plan_.slot_integers, rows());
}

template <typename T>
absl::Span<int32_t> StageArrays<T>::Targets(int slot) const {
  LH_CHECK(model::HasLoss(*graph_, options_.range), "a stage without loss has no targets");
  LH_CHECK(slot >= 0 && slot < options_.slots, "slot ", slot, " of ", options_.slots);
  return integers_.Part((slot + 1) * plan_.slot_integers - Padded(rows()), rows());
}

template <typename T>
absl::Span<Wide<T>> StageArrays<T>::Statistics(int position, int slot, Phase phase) const {
  const int64_t elements =
      model::StatisticsElements(*graph_, graph_->ops[position], options_.micro_batch);
  if (elements == 0) return {};
  const int64_t kept = plan_.slot_statistics[position];
  if (kept != kAbsent) return AsWide<T>(PartOfSlot(kept, elements * kElementsOfWide<T>, slot));
  const auto& offsets =
      phase == Phase::kForward ? plan_.scratch_statistics : plan_.again_statistics;
  return AsWide<T>(scratch_.Part(offsets[position], elements * kElementsOfWide<T>));
}

template <typename T>
absl::Span<Wide<T>> StageArrays<T>::Workspace(int64_t offset, int position) const {
  if (offset == kAbsent) return {};
  const int64_t elements =
      model::WorkspaceElements(*graph_, graph_->ops[position], options_.micro_batch);
  return AsWide<T>(scratch_.Part(offset, elements * kElementsOfWide<T>));
}

template <typename T>
OpCall<T> StageArrays<T>::CommonCall(int position, int slot, Phase phase) const {
  const Op& op = graph_->ops[position];
  OpCall<T> call;
  call.op = &op;
  call.position = position;
  call.batch = options_.micro_batch;
  call.context = graph_->context;
  call.vocab = graph_->vocab;
  for (size_t i = 0; i < op.inputs.size(); ++i) call.inputs[i] = Value(op.inputs[i], slot, phase);
  if (op.output >= 0) call.output = Value(op.output, slot, phase);
  call.statistics = Statistics(position, slot, phase);
  call.constants = Constants(position);
  for (size_t i = 0; i < op.parameters.size(); ++i) {
    call.parameters[i] = Working(parameter_position_[op.parameters[i]]);
  }
  if (op.kind == model::OpKind::kEmbedding) call.integers = Tokens(slot);
  if (op.kind == model::OpKind::kSoftmaxCrossEntropy) call.integers = Targets(slot);
  return call;
}

template <typename T>
OpCall<T> StageArrays<T>::ForwardCall(int position, int slot, Phase phase) const {
  OpCall<T> call = CommonCall(position, slot, phase);
  const auto& workspaces =
      phase == Phase::kForward ? plan_.forward_workspace : plan_.again_workspace;
  call.workspace = Workspace(workspaces[position], position);
  return call;
}

template <typename T>
OpCall<T> StageArrays<T>::BackwardCall(int position, int slot) const {
  const Op& op = graph_->ops[position];
  OpCall<T> call = CommonCall(position, slot, Phase::kBackward);
  call.workspace = Workspace(plan_.backward_workspace[position], position);
  if (op.output >= 0) call.output_gradient = Gradient(op.output, slot);
  const auto& contributions = plan_.contributions[position];
  for (size_t i = 0; i < contributions.size(); ++i) {
    call.input_gradients[i] = Scratch(contributions[i].source, op.inputs[i]);
  }
  if (op.kind == model::OpKind::kSoftmaxCrossEntropy) {
    call.input_gradients[0] = Gradient(op.inputs[0], slot);
  }
  for (size_t i = 0; i < op.parameters.size(); ++i) {
    call.parameter_gradients[i] = gradients_[first_gradient_[position] + i].values;
  }
  return call;
}

template class StageArrays<float>;
template class StageArrays<double>;
template class StageArrays<BFloat16>;

}  // namespace longhaul::compute
