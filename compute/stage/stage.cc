#include "compute/stage/stage.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "compute/ops/shape_check.h"
#include "compute/ops/softmax_cross_entropy.h"
#include "compute/optim/round.h"
#include "compute/optim/sum_of_squares.h"
#include "compute/stage/initialize.h"
#include "compute/stage/not_finite.h"
#include "compute/stage/op_call.h"
#include "compute/stage/op_runner.h"
#include "compute/stage/stage_arrays.h"

namespace longhaul::compute {
namespace {

using model::Graph;
using model::OpRange;

// T: what the operators compute in.
template <typename T>
class GraphStage : public Stage<Wide<T>> {
 public:
  using State = Wide<T>;
  static constexpr bool kHasWorkingWeights = !std::is_same_v<T, State>;

  GraphStage(const Graph& graph, const StageOptions& options, Backend& backend, uint64_t seed,
             StageArrays<T> arrays)
      : graph_(graph),
        range_(options.range),
        backend_(backend),
        seed_(seed),
        arrays_(std::move(arrays)),
        runner_(graph, options.range, backend, arrays_),
        draws_(options.slots) {
    for (int position = range_.begin; position < range_.end; ++position) {
      has_dropout_ = has_dropout_ || graph_.ops[position].probability > 0;
    }
    for (int slot = 0; slot < options.slots; ++slot) {
      recorded_forward_.push_back(backend_.MakeRecording());
      recorded_backward_.push_back(backend_.MakeRecording());
    }
    ListTensors();
  }

  absl::Status DrawWeights() {
    for (const StageParameter<State>& parameter : arrays_.parameters()) {
      LH_RETURN_IF_ERROR(InitializeParameter(backend_, graph_.parameters[parameter.index],
                                             parameter.index, seed_, parameter.weights));
    }
    return WeightsChanged();
  }

  absl::Status MakeConstants() {
    for (int position = range_.begin; position < range_.end; ++position) {
      const absl::Span<State> constants = arrays_.Constants(position);
      if (constants.empty()) continue;
      LH_RETURN_IF_ERROR(FillConstants<T>(backend_, graph_, graph_.ops[position], constants));
    }
    return absl::OkStatus();
  }

  // Kernels are chosen before the first step.
  absl::Status Prepare() {
    for (int position = range_.begin; position < range_.end; ++position) {
      LH_ASSIGN_OR_RETURN(const std::string kernel,
                          PrepareOp(backend_, arrays_.ForwardCall(position, 0, Phase::kForward)));
      if (!kernel.empty()) attention_kernel_ = kernel;
    }
    return absl::OkStatus();
  }

  bool is_first() const override { return model::HasEmbedding(range_); }
  bool is_last() const override { return model::HasLoss(graph_, range_); }

  absl::Span<StageParameter<State>> parameters() override { return arrays_.parameters(); }
  absl::Status WeightsChanged() override;
  absl::Span<StageGradient<State>> gradients() override { return arrays_.gradients(); }

  DeviceSpan input(int slot) override {
    LH_CHECK(!is_first(), "the first stage has tokens, no input");
    return DeviceSpan(arrays_.Input(slot));
  }
  DeviceSpan output(int slot) const override {
    LH_CHECK(!is_last(), "the last stage has logits, no output");
    return DeviceSpan(arrays_.Output(slot));
  }
  DeviceSpan output_gradient() override {
    LH_CHECK(!is_last(), "the last stage makes its own gradient");
    return DeviceSpan(arrays_.OutputGradient());
  }
  DeviceSpan input_gradient() const override {
    LH_CHECK(!is_first(), "tokens have no gradient");
    return DeviceSpan(arrays_.InputGradient());
  }
  DeviceSpan logits() const override {
    LH_CHECK(is_last(), "only the last stage has logits");
    return DeviceSpan(arrays_.Value(graph_.ops.back().inputs[0], logits_slot_, Phase::kForward));
  }

  absl::Status Forward(const ForwardPass& pass) override;
  absl::Status Backward(int slot) override;
  void WatchBackward(std::function<absl::Status(int op)> watch) override {
    watch_ = std::move(watch);
  }
  void LookForNotFinite(NotFinite* found) override { found_ = found; }
  absl::Status ZeroGradients() override {
    auto& array = arrays_.gradient_array();
    return backend_.Zero(array.data(), static_cast<size_t>(array.bytes()));
  }

  absl::Status SumUses() override;
  absl::Status GradientSumsOfSquares(absl::Span<double> sums) override {
    return SumsNow(gradient_tensors_, sums);
  }
  absl::Status WeightSumsOfSquares(absl::Span<double> sums) override {
    return SumsNow(weight_tensors_, sums);
  }
  absl::Status ApplyAdamW(const AdamWStep& step) override;

  const std::string& attention_kernel() const override { return attention_kernel_; }
  Backend& backend() override { return backend_; }

 private:
  void ListTensors();
  absl::Span<State> SummedGradient(int i) {
    return arrays_.gradients()[arrays_.uses(i).front()].values;
  }
  absl::Status Copy(absl::Span<const T> from, absl::Span<T> to) {
    return backend_.Copy(to.data(), from.data(), from.size() * sizeof(T));
  }
  absl::Status SumsNow(absl::Span<const absl::Span<const State>> tensors, absl::Span<double> sums) {
    LH_CHECK(tensors.size() == sums.size(), tensors.size(), " tensors, ", sums.size(), " sums");
    LH_RETURN_IF_ERROR(SumsOfSquares<State>(backend_, tensors, sums.data()));
    return backend_.Synchronize();
  }
  absl::Status CopyIds(const IdRange& range, absl::Span<const int32_t> from,
                       absl::Span<int32_t> to);
  // What Forward and Backward queue for a micro-batch, but for the loss's forward.
  absl::Status QueueForward(int slot);
  absl::Status QueueBackward(int slot, const std::function<absl::Status(int op)>& watch);
  // Whether the slot's micro-batch is the same work as every other.
  bool IsRecorded(int slot) const {
    return found_ == nullptr && !(has_dropout_ && draws_[slot].training);
  }
  OpCall<T> ForwardCall(int position, int slot, Phase phase) const {
    OpCall<T> call = arrays_.ForwardCall(position, slot, phase);
    call.draws = draws_[slot];
    return call;
  }
  OpCall<T> BackwardCall(int position, int slot) const {
    OpCall<T> call = arrays_.BackwardCall(position, slot);
    call.draws = draws_[slot];
    return call;
  }

  const Graph& graph_;
  const OpRange range_;
  Backend& backend_;
  const uint64_t seed_;
  StageArrays<T> arrays_;
  const OpRunner<T> runner_;
  std::string attention_kernel_;
  // By position in parameters(): for the optimizer, for norms of gradients and of weights.
  std::vector<AdamWTensor<T>> optimizer_tensors_;
  std::vector<absl::Span<const State>> gradient_tensors_, weight_tensors_;
  std::vector<Draws> draws_;  // by slot, of its latest Forward
  bool has_dropout_ = false;
  std::vector<std::unique_ptr<Recording>> recorded_forward_, recorded_backward_;  // by slot
  int logits_slot_ = 0;                        // of the latest Forward
  std::function<absl::Status(int op)> watch_;  // of the next Backward
  NotFinite* found_ = nullptr;                 // null: nothing is looked for
};

template <typename T>
absl::Status GraphStage<T>::CopyIds(const IdRange& range, absl::Span<const int32_t> from,
                                    absl::Span<int32_t> to) {
  LH_CHECK(from.size() == to.size(), "got ", from.size(), " tokens, a micro-batch has ", to.size());
  // Here, since kernels of a device cannot refuse.
  LH_RETURN_IF_ERROR(CheckIds("stage", range, from.data(), static_cast<int64_t>(from.size())));
  return backend_.Upload(to.data(), from.data(), from.size() * sizeof(int32_t));
}

template <typename T>
absl::Status GraphStage<T>::Forward(const ForwardPass& pass) {
  const int slot = pass.slot;
  LH_CHECK(slot >= 0 && slot < static_cast<int>(draws_.size()), "slot ", slot);
  if (is_first()) {
    LH_RETURN_IF_ERROR(CopyIds({"token", graph_.vocab, 0}, pass.tokens, arrays_.Tokens(slot)));
  }
  if (is_last()) {
    LH_RETURN_IF_ERROR(
        CopyIds({"target", graph_.vocab, kIgnoredTarget}, pass.targets, arrays_.Targets(slot)));
  }
  draws_[slot] = {seed_, pass.step, pass.first_sequence, pass.training};
  logits_slot_ = slot;
  const auto work = [&] { return QueueForward(slot); };
  LH_RETURN_IF_ERROR(IsRecorded(slot) ? recorded_forward_[slot]->Run(work) : work());
  if (!is_last()) return absl::OkStatus();
  OpCall<T> loss = ForwardCall(range_.end - 1, slot, Phase::kForward);
  loss.loss_sum = pass.loss_sum;
  LH_RETURN_IF_ERROR(ForwardOp(backend_, loss));
  return found_ == nullptr ? absl::OkStatus() : NoteForward(backend_, loss, *found_);
}

template <typename T>
absl::Status GraphStage<T>::QueueForward(int slot) {
  const int end = is_last() ? range_.end - 1 : range_.end;
  for (int position = range_.begin; position < end;) {
    const OpCall<T> call = ForwardCall(position, slot, Phase::kForward);
    OpCall<T> next;
    const bool has_next = position + 1 < end;
    if (has_next) next = ForwardCall(position + 1, slot, Phase::kForward);
    LH_ASSIGN_OR_RETURN(const int done, runner_.Forward(call, has_next ? &next : nullptr, found_));
    position += done;
  }
  for (const model::EdgeCopy& copy : arrays_.plan().forward_copies) {
    LH_RETURN_IF_ERROR(
        Copy(arrays_.InSlot(copy.from, copy.edge, slot), arrays_.InSlot(copy.to, copy.edge, slot)));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::Backward(int slot) {
  const std::function<absl::Status(int op)> watch = std::exchange(watch_, nullptr);
  const auto work = [&] { return QueueBackward(slot, watch); };
  return IsRecorded(slot) && !watch ? recorded_backward_[slot]->Run(work) : work();
}

template <typename T>
absl::Status GraphStage<T>::QueueBackward(int slot,
                                          const std::function<absl::Status(int op)>& watch) {
  const std::vector<model::BackwardAction>& actions = arrays_.plan().backward;
  for (size_t i = 0; i < actions.size();) {
    const model::BackwardAction action = actions[i];
    const int neighbour = action.again ? action.op + 1 : action.op - 1;
    const bool follows = i + 1 < actions.size() && actions[i + 1].op == neighbour &&
                         actions[i + 1].again == action.again;
    OpCall<T> next;
    int done = 0;
    if (action.again) {
      if (follows) next = ForwardCall(neighbour, slot, Phase::kAgain);
      LH_ASSIGN_OR_RETURN(done, runner_.Forward(ForwardCall(action.op, slot, Phase::kAgain),
                                                follows ? &next : nullptr, nullptr));
    } else {
      if (follows) next = BackwardCall(neighbour, slot);
      LH_ASSIGN_OR_RETURN(
          done, runner_.Backward(BackwardCall(action.op, slot), follows ? &next : nullptr, found_));
      for (int op = action.op; watch && op > action.op - done; --op) {
        LH_RETURN_IF_ERROR(watch(op));
      }
    }
    i += static_cast<size_t>(done);
  }
  for (const model::EdgeCopy& copy : arrays_.plan().backward_copies) {
    LH_RETURN_IF_ERROR(
        Copy(arrays_.Scratch(copy.from, copy.edge), arrays_.Scratch(copy.to, copy.edge)));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::SumUses() {
  for (int i = 0; i < static_cast<int>(arrays_.parameters().size()); ++i) {
    const std::vector<int>& uses = arrays_.uses(i);
    const absl::Span<State> sum = SummedGradient(i);
    for (size_t use = 1; use < uses.size(); ++use) {
      LH_RETURN_IF_ERROR(Add<State>(backend_, sum, arrays_.gradients()[uses[use]].values, sum));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status GraphStage<T>::ApplyAdamW(const AdamWStep& step) {
  return AdamW<T>(backend_, step, optimizer_tensors_);
}

template <typename T>
void GraphStage<T>::ListTensors() {
  for (int i = 0; i < static_cast<int>(arrays_.parameters().size()); ++i) {
    const StageParameter<State>& parameter = arrays_.parameters()[i];
    gradient_tensors_.push_back(SummedGradient(i));
    weight_tensors_.push_back(parameter.weights);
    optimizer_tensors_.push_back({SummedGradient(i), parameter.weights, parameter.first_moment,
                                  parameter.second_moment,
                                  kHasWorkingWeights ? arrays_.Working(i) : absl::Span<T>(),
                                  graph_.parameters[parameter.index].decays});
  }
}

template <typename T>
absl::Status GraphStage<T>::WeightsChanged() {
  if (!kHasWorkingWeights) return absl::OkStatus();
  for (const AdamWTensor<T>& tensor : optimizer_tensors_) {
    LH_RETURN_IF_ERROR(Round<T>(backend_, tensor.weights, tensor.working));
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::unique_ptr<Stage<Wide<T>>>> CreateStage(const Graph& graph,
                                                            const StageOptions& options,
                                                            Backend& backend, uint64_t seed) {
  LH_ASSIGN_OR_RETURN(StageArrays<T> arrays, StageArrays<T>::Allocate(graph, options, backend));
  auto stage = std::make_unique<GraphStage<T>>(graph, options, backend, seed, std::move(arrays));
  if (!options.weights_follow) LH_RETURN_IF_ERROR(stage->DrawWeights());
  LH_RETURN_IF_ERROR(stage->MakeConstants());
  LH_RETURN_IF_ERROR(stage->Prepare());
  return stage;
}

}  // namespace

template <>
absl::StatusOr<std::unique_ptr<Stage<float>>> Stage<float>::Create(const Graph& graph,
                                                                   const StageOptions& options,
                                                                   Backend& backend,
                                                                   uint64_t seed) {
  if (options.precision == model::Precision::kFloat32)
    return CreateStage<float>(graph, options, backend, seed);
  if (!backend.has_bfloat16()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a device of numeric class ", backend.numeric_class(),
                     " does not compute in bf16; `precision: fp32` is for it"));
  }
  return CreateStage<BFloat16>(graph, options, backend, seed);
}

template <>
absl::StatusOr<std::unique_ptr<Stage<double>>> Stage<double>::Create(const Graph& graph,
                                                                     const StageOptions& options,
                                                                     Backend& backend,
                                                                     uint64_t seed) {
  LH_CHECK(options.precision == model::Precision::kFloat32, "a stage in double is for reference");
  return CreateStage<double>(graph, options, backend, seed);
}

}  // namespace longhaul::compute
