#include "worker/exec/testing/executor_cluster.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compute/testing/op_testing.h"
#include "model/buffer_plan.h"
#include "model/family.h"
#include "schedule/replay.h"
#include "worker/comm/testing/in_process_mesh.h"
#include "worker/host/links.h"

namespace longhaul::worker {
namespace {

constexpr Epoch kEpoch{.term = 1, .number = 3};
constexpr char kToken[] = "token";
constexpr double kValidationFraction = 0.2;

template <typename T>
T Get(absl::StatusOr<T> value) {
  LH_CHECK(value.ok(), value.status().ToString());
  return *std::move(value);
}

void Must(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

std::vector<model::OpRange> CutEvenly(const model::Graph& graph, const ClusterOptions& options) {
  const std::vector<int> cuts = options.inside_blocks ? graph.CutPoints() : graph.BlockPoints();
  LH_CHECK(static_cast<int>(cuts.size()) >= options.stages - 1, cuts.size(), " cut points");
  std::vector<model::OpRange> ranges;
  int begin = 0;
  for (int s = 1; s < options.stages; ++s) {
    const int end = cuts[s * (cuts.size() + 1) / options.stages - 1];
    ranges.push_back({begin, end});
    begin = end;
  }
  ranges.push_back({begin, static_cast<int>(graph.ops.size())});
  return ranges;
}

// Of memory of the stage's device.
std::vector<float> Values(compute::Stage<float>& stage, absl::Span<const float> values) {
  std::vector<float> copy(values.size());
  Must(stage.backend().CopyToHost(copy.data(), values.data(), values.size() * sizeof(float)));
  Must(stage.backend().Synchronize());
  return copy;
}

std::vector<uint32_t> Bits(compute::Stage<float>& stage,
                           const compute::StageParameter<float>& parameter) {
  std::vector<uint32_t> bits;
  for (const absl::Span<float> values :
       {parameter.weights, parameter.first_moment, parameter.second_moment}) {
    for (const float value : Values(stage, values)) bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

void AddState(const model::Graph& graph, compute::Stage<float>& stage, StateBits& state) {
  for (const compute::StageParameter<float>& parameter : stage.parameters()) {
    const std::string& name = graph.parameters[parameter.index].name;
    const std::vector<uint32_t> bits = Bits(stage, parameter);
    const auto [known, added] = state.emplace(name, bits);
    LH_CHECK(added || known->second == bits, name, " differs between stages");
  }
}

// A parameter's gradient is in the accumulator of its first use.
void AddGradients(const model::Graph& graph, compute::Stage<float>& stage,
                  GradientValues& gradients) {
  std::set<int> seen;
  for (const compute::StageGradient<float>& gradient : stage.gradients()) {
    if (!seen.insert(gradient.use.parameter).second) continue;
    const std::string& name = graph.parameters[gradient.use.parameter].name;
    const std::vector<float> values = Values(stage, gradient.values);
    const auto [known, added] = gradients.emplace(name, values);
    LH_CHECK(added || known->second == values, name, "'s gradient differs between groups");
  }
}

std::string Address(int group) { return absl::StrCat("stage-", group); }

schedule::Shape ShapeOf(const ClusterOptions& options) {
  return {options.stages, options.micro_batches, options.tied, options.replicas, options.owners};
}

}  // namespace

run::RunSpec ClusterSpec(const ClusterOptions& options) {
  run::RunSpec spec;
  spec.name = "cluster";
  spec.model = {
      .layers = 4, .hidden = 32, .heads = 4, .context = 16, .vocab = 48, .tied = options.tied};
  spec.model.family = options.llama ? "llama" : "gpt2";
  spec.model.kv_heads = options.llama ? 2 : 0;
  spec.model.dropout = options.llama ? 0.2 : 0;
  spec.data.train = "memory";
  spec.data.validation_fraction = kValidationFraction;
  spec.train.steps = 20;
  spec.train.global_batch = 2 * options.micro_batches;
  spec.train.micro_batch = 2;
  spec.train.optimizer.learning_rate = 3e-3;
  spec.train.optimizer.grad_clip = 0.5;
  spec.train.schedule = {
      .warmup_steps = 2, .decay = run::Decay::kCosine, .min_learning_rate = 1e-4};
  spec.train.seed = 5;
  spec.train.evaluate_every = 1;
  spec.schedule = options.schedule;
  return spec;
}

ExecutorCluster::ExecutorCluster(const ClusterOptions& options)
    : options_(options),
      spec_(ClusterSpec(options)),
      graph_(Get(model::BuildGraph(spec_.model))),
      shape_(ShapeOf(options)),
      layout_(shape_),
      ranges_(CutEvenly(graph_, options)),
      data_(spec_, options.data),
      network_(clock_) {
  const std::vector<schedule::Program> programs = Get(schedule::Generate(options.schedule, shape_));
  Must(schedule::Replay(programs, shape_));
  ExecutorOptions shared;
  shared.spec = &spec_;
  shared.graph = &graph_;
  shared.epoch = kEpoch;
  shared.shape = shape_;
  shared.evaluation_shape = evaluation_shape_ = MakeEvaluationShape();
  shared.ranges = ranges_;
  shared.wait_max = options.wait_max;
  groups_.resize(layout_.count());
  BuildCollectives();
  for (int group = 0; group < groups(); ++group) BuildGroup(group, shared, programs);
}

schedule::Shape ExecutorCluster::MakeEvaluationShape() const {
  std::vector<int> replicas;
  for (int stage = 0; stage < stages(); ++stage) replicas.push_back(layout_.replicas(stage));
  return schedule::EvaluationShape(replicas,
                                   static_cast<int>(data_.batches().validation_micro_batches()));
}

void ExecutorCluster::BuildCollectives() {
  for (int stage = 0; stage < stages(); ++stage) {
    const int replicas = layout_.replicas(stage);
    if (replicas == 1) continue;
    std::vector<std::unique_ptr<Mesh>> meshes = MakeInProcessMeshes(replicas, clock_);
    for (int replica = 0; replica < replicas; ++replica) {
      groups_[layout_.GroupOf(stage, replica)].collective =
          MakeCollective(std::move(meshes[replica]));
    }
  }
}

ExchangeOptions ExecutorCluster::MakeExchangeOptions(
    int group, const std::vector<schedule::Program>& programs) const {
  const int stage = layout_.stage(group);
  ExchangeOptions exchange;
  exchange.run = spec_.name;
  exchange.epoch = kEpoch;
  exchange.token = kToken;
  exchange.group = group;
  exchange.stage = stage;
  exchange.name = layout_.Name(group);
  std::vector<StagePeer> peers(groups());
  for (int peer = 0; peer < groups(); ++peer) {
    peers[peer].node = peers[peer].data_address = Address(peer);
  }
  const std::vector<std::string> codecs(stages() - 1, options_.codec);
  const LinkFacts facts{graph_,   ranges_, shape_, evaluation_shape_,
                        programs, peers,   codecs, spec_.train.micro_batch,
                        1};
  exchange.links = MakeLinks(facts, group);
  return exchange;
}

void ExecutorCluster::BuildGroup(int group, const ExecutorOptions& shared,
                                 const std::vector<schedule::Program>& programs) {
  GroupParts& parts = groups_[group];
  const int stage = layout_.stage(group);
  compute::StageOptions stage_options;
  stage_options.range = ranges_[stage];
  stage_options.micro_batch = spec_.train.micro_batch;
  stage_options.slots = programs[group].slots;
  const bool on_card = !options_.cards.empty() && options_.cards[group];
  parts.backend = on_card ? compute::TestCudaBackend() : compute::MakeCpuBackend(options_.threads);
  stage_options.recompute = options_.recompute;
  if (on_card && options_.bfloat16) stage_options.precision = model::Precision::kBFloat16;
  parts.stage =
      Get(compute::Stage<float>::Create(graph_, stage_options, *parts.backend, spec_.train.seed));
  if (options_.exact_replicas) {
    parts.tree = Get(compute::GradientTree<float>::Create(
        *parts.stage, static_cast<int>(layout_.MicroBatches(group).size())));
  }
  parts.transport = network_.MakeTransport();
  parts.exchange =
      Get(MakeExchange(MakeExchangeOptions(group, programs), *parts.transport, clock_));
  parts.router = std::make_unique<ExchangeRouter>(clock_);
  parts.router->Register(spec_.name, kEpoch, kToken, parts.exchange.get());
  network_.Listen(Address(group), parts.router.get());
  ExecutorOptions options = shared;
  options.stage = stage;
  options.replica = layout_.replica(group);
  options.range = ranges_[stage];
  options.program = programs[group];
  options.evaluation_program =
      schedule::GenerateEvaluationOf(shared.evaluation_shape, stage, options.replica);
  options.collective = parts.collective.get();
  options.links = MakeExchangeOptions(group, programs).links;
  options.gradient_tree = parts.tree.get();
  const bool has_batches = stage == 0 || stage == options_.stages - 1;
  parts.executor = Get(StageExecutor::Create(
      std::move(options), parts.stage.get(), parts.exchange.get(),
      has_batches ? &data_.batches() : nullptr, group == 0 ? &directives_ : nullptr, &clock_));
}

ExecutorCluster::~ExecutorCluster() {
  for (GroupParts& parts : groups_) parts.exchange->Cancel(absl::CancelledError("test ends"));
  for (int group = 0; group < groups(); ++group) {
    groups_[group].router->Unregister(spec_.name, kEpoch);
    network_.Stop(Address(group));
  }
  for (GroupParts& parts : groups_) parts.exchange.reset();
}

void ExecutorCluster::BreakConnections() {
  for (int group = 0; group < groups(); ++group) network_.Break(Address(group));
}

void ExecutorCluster::OnEveryGroup(absl::FunctionRef<void(int group)> work) {
  std::vector<std::thread> threads;
  for (int group = 0; group < groups(); ++group) {
    threads.emplace_back([work, group] { work(group); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::vector<absl::StatusOr<StepResult>>> ExecutorCluster::RunSteps(int64_t first,
                                                                               int count) {
  std::vector<std::vector<absl::StatusOr<StepResult>>> results(groups());
  OnEveryGroup([&](int group) {
    for (int64_t step = first; step < first + count; ++step) {
      results[group].push_back(executor(group).RunStep(step));
      if (!results[group].back().ok()) return;
    }
  });
  return results;
}

std::vector<absl::StatusOr<EvaluationResult>> ExecutorCluster::Evaluate(int64_t step) {
  std::vector<absl::StatusOr<EvaluationResult>> results(groups(), absl::UnknownError("not run"));
  OnEveryGroup([&](int group) { results[group] = executor(group).Evaluate(step); });
  return results;
}

StateBits ExecutorCluster::State() {
  StateBits state;
  for (GroupParts& parts : groups_) AddState(graph_, *parts.stage, state);
  return state;
}

GradientValues ExecutorCluster::Gradients() {
  GradientValues gradients;
  for (GroupParts& parts : groups_) AddGradients(graph_, *parts.stage, gradients);
  return gradients;
}

ReferenceRun::ReferenceRun(const ClusterOptions& options)
    : exact_(options.exact_replicas),
      spec_(ClusterSpec(options)),
      graph_(Get(model::BuildGraph(spec_.model))),
      data_(spec_, options.data),
      backend_(compute::MakeCpuBackend(1)),
      stage_(Get(compute::Stage<float>::Create(
          graph_, {{0, static_cast<int>(graph_.ops.size())}, spec_.train.micro_batch, 1}, *backend_,
          spec_.train.seed))) {}

double ReferenceRun::SumGradients(int64_t step) {
  const run::TrainSpec& train = spec_.train;
  std::vector<int32_t> tokens(train.micro_batch * graph_.context), targets(tokens.size());
  std::vector<std::vector<float>> parts;  // exact: of each micro-batch
  double loss_sum = 0;
  Must(stage_->ZeroGradients());
  for (int64_t m = 0; m < train.micro_batches(); ++m) {
    if (exact_) Must(stage_->ZeroGradients());
    data_.batches().Train(step, m, absl::MakeSpan(tokens), absl::MakeSpan(targets));
    double loss = 0;
    Must(stage_->Forward({0, tokens, targets, &loss, step, m * train.micro_batch, true}));
    Must(stage_->Backward(0));
    loss_sum += loss;
    if (exact_) parts.push_back(Accumulators());
  }
  if (!exact_) return loss_sum;
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    LH_CHECK(parts.size() % 2 == 0, "the reference tree is for powers of two");
    for (size_t i = 0; i < parts.size() / 2; ++i) {
      std::vector<float> sum = parts[2 * i];
      for (size_t e = 0; e < sum.size(); ++e) sum[e] += parts[2 * i + 1][e];
      parts[i] = std::move(sum);
    }
  }
  auto next = parts[0].begin();
  for (const compute::StageGradient<float>& gradient : stage_->gradients()) {
    std::copy_n(next, gradient.values.size(), gradient.values.begin());
    next += static_cast<int64_t>(gradient.values.size());
  }
  return loss_sum;
}

std::vector<float> ReferenceRun::Accumulators() {
  std::vector<float> all;
  for (const compute::StageGradient<float>& gradient : stage_->gradients()) {
    all.insert(all.end(), gradient.values.begin(), gradient.values.end());
  }
  return all;
}

int64_t ReferenceRun::CountTargets(int64_t step) const {
  const run::TrainSpec& train = spec_.train;
  std::vector<int32_t> tokens(train.micro_batch * graph_.context), targets(tokens.size());
  int64_t count = 0;
  for (int64_t m = 0; m < train.micro_batches(); ++m) {
    data_.batches().Train(step, m, absl::MakeSpan(tokens), absl::MakeSpan(targets));
    for (const int32_t target : targets) count += target != kIgnoredTarget;
  }
  return count;
}

ReferenceRun::Step ReferenceRun::RunStep(int64_t step) {
  const run::TrainSpec& train = spec_.train;
  Step result;
  result.loss_sum = SumGradients(step);
  result.targets = CountTargets(step);
  Must(stage_->SumUses());
  std::vector<double> sums(stage_->parameters().size());
  Must(stage_->GradientSumsOfSquares(absl::MakeSpan(sums)));
  const double squares = std::accumulate(sums.begin(), sums.end(), 0.0);
  const double count = static_cast<double>(result.targets);
  result.gradient_norm = std::sqrt(squares) / count;
  const double clip = std::min(1.0, train.optimizer.grad_clip / (result.gradient_norm + 1e-6));
  Must(stage_->ApplyAdamW({.learning_rate = run::LearningRate(train, step),
                           .beta1 = train.optimizer.beta1,
                           .beta2 = train.optimizer.beta2,
                           .epsilon = train.optimizer.epsilon,
                           .weight_decay = train.optimizer.weight_decay,
                           .gradient_scale = clip / count,
                           .step = step}));
  return result;
}

double ReferenceRun::ValidationLossSum() {
  std::vector<int32_t> tokens(spec_.train.micro_batch * graph_.context), targets(tokens.size());
  double sum = 0;
  for (int64_t m = 0; m < data_.batches().validation_micro_batches(); ++m) {
    data_.batches().Validation(m, absl::MakeSpan(tokens), absl::MakeSpan(targets));
    double loss = 0;
    Must(stage_->Forward({0, tokens, targets, &loss}));
    sum += loss;
  }
  return sum;
}

StateBits ReferenceRun::State() {
  StateBits state;
  AddState(graph_, *stage_, state);
  return state;
}

GradientValues ReferenceRun::Gradients() {
  GradientValues gradients;
  AddGradients(graph_, *stage_, gradients);
  return gradients;
}

}  // namespace longhaul::worker
