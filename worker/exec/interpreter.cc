#include "worker/exec/interpreter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "schedule/instruction_kind.h"
#include "worker/exec/stopwatch.h"

namespace longhaul::worker {
namespace {

using schedule::Instruction;
using schedule::InstructionKind;

// What an instruction was doing, for its error; one that waits for others names them itself.
std::string InWords(const Instruction& instruction, bool evaluation) {
  const std::string during = evaluation ? "in the evaluation: " : "";
  switch (instruction.kind) {
    case InstructionKind::kForward:
      return absl::StrCat(during, "forward of micro-batch ", instruction.micro_batch);
    case InstructionKind::kBackward:
      return absl::StrCat(during, "backward of micro-batch ", instruction.micro_batch);
    case InstructionKind::kOptimizerStep:
      return absl::StrCat(during, "optimizer step");
    case InstructionKind::kDecideVerdict:
      return absl::StrCat(during, "verdict");
    case InstructionKind::kReduceGradients:
    case InstructionKind::kReduceLosses:
      return absl::StrCat(during, "sum among the replicas");
    case InstructionKind::kBroadcastTiedSum:
    case InstructionKind::kBroadcastVerdict:
      return absl::StrCat(during, "broadcast among the replicas");
    default:
      return absl::StrCat(during, "exchange");
  }
}

FrameKind FrameKindOf(InstructionKind kind, bool evaluation) {
  switch (kind) {
    case InstructionKind::kSendActivation:
    case InstructionKind::kRecvActivation:
      return evaluation ? FrameKind::kEvaluationActivation : FrameKind::kActivation;
    case InstructionKind::kSendGradient:
    case InstructionKind::kRecvGradient:
      return FrameKind::kGradient;
    case InstructionKind::kSendTiedGradient:
    case InstructionKind::kRecvTiedGradient:
      return FrameKind::kTiedGradient;
    case InstructionKind::kSendTiedSum:
    case InstructionKind::kRecvTiedSum:
      return FrameKind::kTiedSum;
    case InstructionKind::kSendNorms:
    case InstructionKind::kRecvNorms:
      return FrameKind::kNorms;
    case InstructionKind::kSendVerdict:
    case InstructionKind::kRecvVerdict:
      return FrameKind::kVerdict;
    default:
      break;
  }
  LH_CHECK(false, schedule::Info(kind).code, " moves no frame");
  return FrameKind::kActivation;
}

}  // namespace

const StageExecutor::Interpreter::Entry StageExecutor::Interpreter::kMethods[] = {
    {InstructionKind::kRecvActivation, &Interpreter::RecvActivation},
    {InstructionKind::kForward, &Interpreter::Forward},
    {InstructionKind::kSendActivation, &Interpreter::SendActivation},
    {InstructionKind::kRecvGradient, &Interpreter::RecvGradient},
    {InstructionKind::kBackward, &Interpreter::Backward},
    {InstructionKind::kSendGradient, &Interpreter::SendGradient},
    {InstructionKind::kReduceGradients, &Interpreter::ReduceGradients},
    {InstructionKind::kReduceLosses, &Interpreter::ReduceLosses},
    {InstructionKind::kBroadcastTiedSum, &Interpreter::BroadcastTiedSum},
    {InstructionKind::kBroadcastVerdict, &Interpreter::BroadcastVerdict},
    {InstructionKind::kSendTiedGradient, &Interpreter::SendTied},
    {InstructionKind::kRecvTiedGradient, &Interpreter::RecvTiedGradient},
    {InstructionKind::kSendTiedSum, &Interpreter::SendTied},
    {InstructionKind::kRecvTiedSum, &Interpreter::RecvTiedSum},
    {InstructionKind::kRecvNorms, &Interpreter::RecvNorms},
    {InstructionKind::kSendNorms, &Interpreter::SendNorms},
    {InstructionKind::kDecideVerdict, &Interpreter::DecideVerdict},
    {InstructionKind::kRecvVerdict, &Interpreter::RecvVerdict},
    {InstructionKind::kSendVerdict, &Interpreter::SendVerdict},
    {InstructionKind::kOptimizerStep, &Interpreter::OptimizerStep},
};

StageExecutor::Interpreter::Method StageExecutor::Interpreter::MethodOf(InstructionKind kind) {
  for (const Entry& entry : kMethods) {
    if (entry.kind == kind) return entry.method;
  }
  LH_CHECK(false, "instruction ", schedule::Info(kind).code, " has no method");
  return nullptr;
}

StageExecutor::Interpreter::Interpreter(ExecutorOptions options, compute::Stage<float>* stage,
                                        Exchange* exchange, const data::Batches* batches,
                                        DirectiveBox* directives, Clock* clock)
    : options_(std::move(options)),
      stage_(stage),
      exchange_(exchange),
      batches_(batches),
      directives_(directives),
      clock_(clock),
      training_groups_(options_.shape),
      evaluation_groups_(options_.evaluation_shape),
      name_(training_groups_.Name(training_groups_.GroupOf(options_.stage, options_.replica))),
      norms_layout_(*options_.graph, options_.ranges),
      sums_of_squares_(stage->parameters().size()),
      slots_(options_.program) {
  CheckOptions();
  tied_gradients_ = FindTiedGradients();
  if (batches_ != nullptr) {
    const int64_t rows = options_.spec->train.micro_batch * options_.graph->context;
    tokens_.resize(rows);
    targets_.resize(rows);
  }
}

absl::Status StageExecutor::Interpreter::Start() {
  compute::Backend& backend = stage_->backend();
  LH_ASSIGN_OR_RETURN(timer_, backend.MakeTimer());
  if (is_first()) {
    size_t elements_max = 0;
    for (const absl::Span<float> values : tied_gradients_) {
      elements_max = std::max(elements_max, values.size());
    }
    LH_ASSIGN_OR_RETURN(tied_received_, compute::DeviceArray<float>::Allocate(
                                            backend, static_cast<int64_t>(elements_max)));
  }
  LH_ASSIGN_OR_RETURN(port_, MakeTensorPort(backend, exchange_, options_.links, *clock_));
  if (options_.collective != nullptr) {
    reducer_ = std::make_unique<GradientReducer>(*stage_, *options_.collective, *clock_);
  }
  return absl::OkStatus();
}

void StageExecutor::Interpreter::CheckOptions() const {
  LH_CHECK(options_.ranges.size() == static_cast<size_t>(options_.shape.stages) &&
           options_.ranges[options_.stage] == options_.range);
  LH_CHECK(stage_->is_first() == is_first() && stage_->is_last() == is_last(), name_,
           " holds other operators");
  LH_CHECK(batches_ != nullptr || !(is_first() || is_last()), name_, " needs batches");
  LH_CHECK(directives_ != nullptr || !is_first() || !is_leader(), name_, " needs the directives");
  LH_CHECK(exchange_ != nullptr || options_.shape.stages == 1, "no exchange");
  const int replicas = training_groups_.replicas(options_.stage);
  const Collective* const collective = options_.collective;
  LH_CHECK(collective == nullptr
               ? replicas == 1
               : collective->size() == replicas && collective->rank() == options_.replica,
           name_, " of ", replicas, " replicas has another collective");
  LH_CHECK(collective == nullptr || collective->on_device() ||
               stage_->backend().kind() == compute::DeviceKind::kCpu,
           name_, " has a collective that takes the host's memory");
  for (const schedule::Program* program : {&options_.program, &options_.evaluation_program}) {
    for (const Instruction& instruction : program->instructions) {
      LH_CHECK(instruction.stage == options_.stage && instruction.step_offset == 0 &&
                   instruction.weight_version == 0,
               schedule::ToText(instruction), " of stage ", instruction.stage);
    }
  }
}

absl::StatusOr<StepResult> StageExecutor::Interpreter::RunStep(int64_t step) {
  LH_CHECK(step >= 1, "step ", step);
  const run::TrainSpec& train = options_.spec->train;
  pass_ = Pass();
  pass_.step = step;
  if (is_last()) pass_.losses.resize(options_.shape.micro_batches);
  {
    const Stopwatch total(*clock_, pass_.timings.total);
    if (options_.gradient_tree == nullptr) LH_RETURN_IF_ERROR(stage_->ZeroGradients());
    LH_RETURN_IF_ERROR(RunPass(options_.program));
  }
  if (timer_ != nullptr) {
    // The host waits while the device computes; what counts is when neither gets on.
    StepTimings& timings = pass_.timings;
    timings.wait = std::clamp(timings.total - timings.compute, 0.0, timings.wait);
  }
  StepResult result;
  result.step = step;
  result.applied = pass_.verdict.apply;
  result.gradient_norm = pass_.verdict.gradient_norm;
  result.loss_sum = LossSum();
  result.tokens = pass_.verdict.tokens;
  result.learning_rate = run::LearningRate(train, step);
  result.directive = pass_.verdict.directive;
  result.timings = pass_.timings;
  return result;
}

double StageExecutor::Interpreter::LossSum() const {
  return std::accumulate(pass_.losses.begin(), pass_.losses.end(), 0.0);
}

absl::StatusOr<EvaluationResult> StageExecutor::Interpreter::Evaluate(int64_t step) {
  pass_ = Pass();
  pass_.step = step;
  pass_.evaluation = true;
  if (is_last()) pass_.losses.resize(options_.evaluation_shape.micro_batches);
  LH_RETURN_IF_ERROR(RunPass(options_.evaluation_program));
  EvaluationResult result;
  result.loss_sum = LossSum();
  result.targets = batches_ != nullptr ? batches_->validation_targets() : 0;
  return result;
}

absl::Status StageExecutor::Interpreter::RunPass(const schedule::Program& program) {
  absl::Status status = RunProgram(program);
  if (status.ok()) status = Annotate(port_->Finish(Deadline()), name_);
  if (!status.ok()) {
    // What is queued yet writes its results into this pass.
    stage_->backend().Synchronize().IgnoreError();
    return status;
  }
  if (timer_ == nullptr) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const absl::Duration computed, timer_->Take());
  pass_.timings.compute += absl::ToDoubleSeconds(computed);
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::Compute(absl::FunctionRef<absl::Status()> operators) {
  if (timer_ == nullptr) {
    const Stopwatch compute(*clock_, pass_.timings.compute);
    return operators();
  }
  LH_RETURN_IF_ERROR(timer_->Begin());
  absl::Status status = operators();
  status.Update(timer_->End());
  return status;
}

absl::Status StageExecutor::Interpreter::RunProgram(const schedule::Program& program) {
  slots_ = schedule::SlotMap(program);
  for (const Instruction& instruction : program.instructions) {
    absl::Status status;
    if (options_.check_cancelled) status = options_.check_cancelled();
    if (status.ok()) status = (this->*MethodOf(instruction.kind))(instruction);
    if (!status.ok()) return Annotate(status, InWords(instruction, pass_.evaluation));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvActivation(const Instruction& instruction) {
  return Receive(instruction, stage_->input(SlotOf(instruction)));
}

absl::Status StageExecutor::Interpreter::Forward(const Instruction& instruction) {
  if (batches_ != nullptr) {
    const absl::Span<int32_t> tokens = absl::MakeSpan(tokens_), targets = absl::MakeSpan(targets_);
    if (pass_.evaluation) {
      batches_->Validation(instruction.micro_batch, tokens, targets);
    } else {
      batches_->Train(pass_.step, instruction.micro_batch, tokens, targets);
    }
  }
  compute::ForwardPass pass;
  pass.slot = SlotOf(instruction);
  pass.first_sequence = instruction.micro_batch * options_.spec->train.micro_batch;
  pass.step = pass_.step;
  pass.training = !pass_.evaluation;
  if (is_first()) pass.tokens = tokens_;
  if (is_last()) {
    pass.targets = targets_;
    pass.loss_sum = &pass_.losses[instruction.micro_batch];
  }
  return Compute([&] { return stage_->Forward(pass); });
}

absl::Status StageExecutor::Interpreter::SendActivation(const Instruction& instruction) {
  return Send(instruction, stage_->output(SlotOf(instruction)));
}

absl::Status StageExecutor::Interpreter::RecvGradient(const Instruction& instruction) {
  return Receive(instruction, stage_->output_gradient());
}

absl::Status StageExecutor::Interpreter::Backward(const Instruction& instruction) {
  return Compute([&] { return AddGradients(SlotOf(instruction)); });
}

absl::Status StageExecutor::Interpreter::SendGradient(const Instruction& instruction) {
  return Send(instruction, stage_->input_gradient());
}

absl::Status StageExecutor::Interpreter::SumUses() {
  if (pass_.summed) return absl::OkStatus();
  pass_.summed = true;
  return Compute([this] { return stage_->SumUses(); });
}

absl::Status StageExecutor::Interpreter::RecvNorms(const Instruction& instruction) {
  LH_ASSIGN_OR_RETURN(const std::vector<double> values, ReceiveDoubles(instruction));
  LH_ASSIGN_OR_RETURN(pass_.norms_after, norms_layout_.FromDoubles(options_.stage + 1, values));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ParameterNorm>> StageExecutor::Interpreter::NormsFromHere() {
  LH_RETURN_IF_ERROR(SumUses());
  const std::vector<int>& counted = norms_layout_.counted_by(options_.stage);
  const absl::Span<compute::StageParameter<float>> parameters = stage_->parameters();
  LH_RETURN_IF_ERROR(
      Compute([this] { return stage_->GradientSumsOfSquares(absl::MakeSpan(sums_of_squares_)); }));
  std::vector<ParameterNorm> norms;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int parameter = parameters[i].index;
    if (!std::binary_search(counted.begin(), counted.end(), parameter)) continue;
    norms.push_back({parameter, sums_of_squares_[i]});
  }
  norms.insert(norms.end(), pass_.norms_after.begin(), pass_.norms_after.end());
  return norms;
}

absl::Status StageExecutor::Interpreter::SendNorms(const Instruction& instruction) {
  LH_ASSIGN_OR_RETURN(const std::vector<ParameterNorm> norms, NormsFromHere());
  return exchange_->SendDoubles(PeerOf(instruction), KeyOf(instruction),
                                NormsLayout::ToDoubles(norms), Deadline());
}

absl::Status StageExecutor::Interpreter::DecideVerdict(const Instruction& instruction) {
  LH_ASSIGN_OR_RETURN(const std::vector<ParameterNorm> norms, NormsFromHere());
  const run::TrainSpec& train = options_.spec->train;
  pass_.verdict = worker::DecideVerdict(norms_layout_.Total(norms),
                                        batches_->TrainTargets(pass_.step, train.micro_batches()),
                                        train.optimizer.grad_clip, directives_->Take());
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::RecvVerdict(const Instruction& instruction) {
  LH_ASSIGN_OR_RETURN(const std::vector<double> values, ReceiveDoubles(instruction));
  LH_ASSIGN_OR_RETURN(pass_.verdict, VerdictFromDoubles(values, TokensMax()));
  return absl::OkStatus();
}

absl::Status StageExecutor::Interpreter::SendVerdict(const Instruction& instruction) {
  return exchange_->SendDoubles(PeerOf(instruction), KeyOf(instruction), ToDoubles(pass_.verdict),
                                Deadline());
}

absl::Status StageExecutor::Interpreter::OptimizerStep(const Instruction& instruction) {
  if (!pass_.verdict.apply) return absl::OkStatus();
  LH_RETURN_IF_ERROR(SumUses());
  const run::TrainSpec& train = options_.spec->train;
  const compute::AdamWStep step{.learning_rate = run::LearningRate(train, pass_.step),
                                .beta1 = train.optimizer.beta1,
                                .beta2 = train.optimizer.beta2,
                                .epsilon = train.optimizer.epsilon,
                                .weight_decay = train.optimizer.weight_decay,
                                .gradient_scale = pass_.verdict.gradient_scale,
                                .step = pass_.step};
  return Compute([&] { return stage_->ApplyAdamW(step); });
}

int StageExecutor::Interpreter::PeerOf(const Instruction& instruction) const {
  return groups().Peer(instruction);
}

FrameKey StageExecutor::Interpreter::KeyOf(const Instruction& instruction, uint32_t index) const {
  const bool sends = schedule::Info(instruction.kind).role == schedule::Role::kSend;
  return {.epoch = options_.epoch,
          .step = static_cast<uint64_t>(pass_.step),
          .micro_batch = static_cast<uint32_t>(instruction.micro_batch),
          .stage = static_cast<uint32_t>(
              sends ? schedule::PeerStage(instruction.kind, options_.stage, options_.shape.stages)
                    : options_.stage),
          .kind = FrameKindOf(instruction.kind, pass_.evaluation),
          .index = index};
}

absl::Status StageExecutor::Interpreter::Send(const Instruction& instruction,
                                              const compute::DeviceSpan& values, uint32_t index) {
  return port_->Send(PeerOf(instruction), KeyOf(instruction, index), values, Deadline());
}

absl::Status StageExecutor::Interpreter::Receive(const Instruction& instruction,
                                                 const compute::DeviceSpan& values,
                                                 uint32_t index) {
  const Stopwatch wait(*clock_, pass_.timings.wait);
  return port_->Receive(PeerOf(instruction), KeyOf(instruction, index), values, Deadline());
}

absl::StatusOr<std::vector<double>> StageExecutor::Interpreter::ReceiveDoubles(
    const Instruction& instruction) {
  const Stopwatch wait(*clock_, pass_.timings.wait);
  return exchange_->ReceiveDoubles(PeerOf(instruction), KeyOf(instruction), Deadline());
}

}  // namespace longhaul::worker
