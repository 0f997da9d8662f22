#include "worker/host/stage_job.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "compression/frame.h"
#include "data/dataset.h"
#include "data/run_data.h"
#include "worker/host/divergence.h"
#include "worker/host/stage_state.h"

namespace longhaul::worker {

namespace {

// Longest wait for a peer that is there: whatever its stage is computing. Programs cannot wait for
// each other for ever (schedule/replay), so this ends only what a fault of a peer's program holds.
constexpr absl::Duration kPeerBusyMax = absl::Hours(24);

// Longest wait of a stage that is ready for the others. How long they may take is the coordinator's
// to say (its prepare_max); this ends only what a coordinator has forgotten.
constexpr absl::Duration kStartMax = absl::Hours(24);

}  // namespace

StageJob::StageJob(Assignment assignment, WorkerHostOptions options, const StageJobContext& context,
                   std::unique_ptr<StageJob> previous)
    : assignment_(std::move(assignment)),
      options_(std::move(options)),
      dependencies_(context.dependencies),
      outbox_(context.outbox),
      totals_(context.totals),
      datasets_(context.datasets),
      previous_(std::move(previous)),
      remote_(dependencies_.remote->MakeView()),
      local_shards_(absl::StrCat(options_.folder, "/checkpoints")),
      completed_step_(assignment_.start_step),
      name_(absl::StrCat("device group ", assignment_.stage)),
      thread_([this] { Run(); }) {}

StageJob::~StageJob() {
  Cancel(absl::CancelledError("the assignment is over"));
  thread_.join();
}

int64_t StageJob::completed_step() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_step_;
}

std::string StageJob::phase() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

std::string StageJob::name() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return name_;
}

void StageJob::Start(std::vector<std::string> rendezvous) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (started_) return;
  started_ = true;
  rendezvous_ = std::move(rendezvous);
  changed_.notify_all();
}

void StageJob::Stop() { directives_.Set(Directive::kStop); }

void StageJob::Cancel(const absl::Status& reason) { Break(reason, false); }

void StageJob::Fail(const absl::Status& reason) { Break(reason, true); }

void StageJob::Break(const absl::Status& reason, bool failed) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return;
  cancelled_ = OwnCopy(reason);
  failed_ = failed;
  if (exchange_ != nullptr) exchange_->Cancel(reason);
  replicas_.Cancel(reason);
  remote_->Cancel();
  changed_.notify_all();
}

absl::Status StageJob::RunToEnd() {
  preparing_said_ = dependencies_.clock->Now();
  LH_RETURN_IF_ERROR(Prepare());
  LH_RETURN_IF_ERROR(OpenData());
  LH_RETURN_IF_ERROR(CheckCancelled());
  LH_RETURN_IF_ERROR(Build());
  LH_RETURN_IF_ERROR(CheckCancelled());
  return Train();
}

absl::Status StageJob::Prepare() {
  const run::RunSpec& spec = assignment_.spec;
  LH_RETURN_IF_ERROR(ValidateName("run name", assignment_.run));
  LH_RETURN_IF_ERROR(run::Validate(spec));
  LH_ASSIGN_OR_RETURN(split_, data::SplitTokens(spec.data.tokens, spec.data.validation_fraction,
                                                spec.model.context));
  const int64_t evaluations =
      spec.train.evaluate_every > 0
          ? data::ValidationMicroBatches(split_, spec.train.micro_batch, spec.model.context)
          : 0;
  LH_ASSIGN_OR_RETURN(plan_, MakeStagePlan(assignment_, evaluations, options_.connections));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    name_ = plan_.names[assignment_.stage];
  }
  if (!plan_.replica_names.empty() && !options_.facts.trusted_network) {
    return absl::FailedPreconditionError(absl::StrCat(
        "run ", assignment_.run, " wants replicas on node ", options_.facts.name,
        ", whose configuration does not say `trusted_network: true`; sums of gradients are not "
        "encrypted"));
  }
  LH_ASSIGN_OR_RETURN(backend_, dependencies_.make_backend());
  if (assignment_.numeric_class.empty() || assignment_.numeric_class == backend_->numeric_class()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "run ", assignment_.run, " computes in numeric class ", assignment_.numeric_class,
      ", this node in ", backend_->numeric_class(), "; bits would differ"));
}

absl::Status StageJob::Build() {
  const run::RunSpec& spec = assignment_.spec;
  SetPhase("building");
  const compute::StageOptions stage_options{
      plan_.ranges[plan_.stage],
      spec.train.micro_batch,
      plan_.program.slots,
      assignment_.stages[assignment_.stage].recompute,
      assignment_.checkpoint.has_value(),
      backend_->has_bfloat16() ? spec.train.precision : model::Precision::kFloat32};
  LH_ASSIGN_OR_RETURN(stage_, compute::Stage<float>::Create(plan_.graph, stage_options, *backend_,
                                                            spec.train.seed));
  if (backend_->kind() == compute::DeviceKind::kCuda) {
    Log(LogLevel::kInfo, absl::StrCat("kernel of attention: ", stage_->attention_kernel()));
  }
  if (spec.exact_replicas) {
    LH_ASSIGN_OR_RETURN(gradient_tree_,
                        compute::GradientTree<float>::Create(*stage_, plan_.micro_batches));
  }
  if (!assignment_.checkpoint.has_value()) return absl::OkStatus();
  SetPhase("loading the checkpoint");
  KeptShards local = MakeKeptShards();
  // Each step of it may take as long as the coordinator waits for a word.
  const auto goes_on = [this] {
    SayPreparing();
    return CheckCancelled();
  };
  return LoadStage(plan_.graph, *assignment_.checkpoint, *stage_,
                   {&local, remote_.get(), [this] { return MakePatience(); }, goes_on,
                    [this](const std::string& note) { Log(LogLevel::kInfo, note); }},
                   damaged_shard_);
}

absl::Status StageJob::AwaitStart() {
  LH_RETURN_IF_ERROR(replicas_.Listen(plan_, assignment_, *backend_,
                                      dependencies_.device_rendezvous, *dependencies_.clock));
  SetPhase("ready");
  outbox_.Add(assignment_.run, assignment_.epoch,
              Ready{assignment_.run, assignment_.epoch, replicas_.rendezvous()});
  std::unique_lock<std::mutex> lock(mutex_);
  dependencies_.clock->WaitUntil(lock, changed_, dependencies_.clock->Now() + kStartMax,
                                 [this] { return started_ || !cancelled_.ok(); });
  if (!cancelled_.ok()) return OwnCopy(cancelled_);
  if (started_) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      plan_.names[assignment_.stage], " was ready, but the coordinator did not start run ",
      assignment_.run, " within ", absl::FormatDuration(kStartMax)));
}

absl::Status StageJob::Train() {
  ExchangeOptions exchange_options;
  exchange_options.run = assignment_.run;
  exchange_options.epoch = assignment_.epoch;
  exchange_options.token = assignment_.token;
  exchange_options.group = assignment_.stage;
  exchange_options.stage = plan_.stage;
  exchange_options.name = plan_.names[assignment_.stage];
  exchange_options.links = plan_.links;
  exchange_options.jitter_seed = compression::RunHash(options_.facts.name);
  exchange_options.silence_max = *options_.peer_silence_max;
  LH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Exchange> exchange,
      MakeExchange(exchange_options, *dependencies_.transport, *dependencies_.clock));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    exchange_ = exchange.get();
    if (!cancelled_.ok()) exchange->Cancel(OwnCopy(cancelled_));
  }
  totals_.Add(exchange.get());
  dependencies_.router->Register(assignment_.run, assignment_.epoch, assignment_.token,
                                 exchange.get());
  absl::Cleanup withdraw = [&] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      exchange_ = nullptr;
    }
    exchange->Cancel(absl::CancelledError("the stage left the run"));
    replicas_.EndWatch();
    dependencies_.router->Unregister(assignment_.run, assignment_.epoch);
    totals_.Remove(exchange.get());
  };
  keeper_ = std::make_unique<ShardKeeper>(
      assignment_.run, MakeKeptShards(), *remote_, *dependencies_.clock, options_.transfer_max,
      [this](const ShardTask& task, const absl::Status& status) { OnShard(task, status); });
  LH_RETURN_IF_ERROR(AwaitStart());
  LH_RETURN_IF_ERROR(replicas_.Connect(rendezvous_));
  replicas_.Watch(plan_, *exchange);
  if (!replicas_.how().empty()) Log(LogLevel::kInfo, replicas_.how());
  SetPhase("training");

  if (const absl::Status trained = TrainSteps(*exchange); !trained.ok()) {
    // All stages are to say the same, so none leaves before the others have the verdict.
    if (divergence_)
      exchange->Flush(dependencies_.clock->Now() + *options_.peer_silence_max).IgnoreError();
    return trained;
  }
  Log(LogLevel::kInfo, "stage ended");
  AwaitRelease();
  return absl::OkStatus();
}

void StageJob::AwaitRelease() {
  FreeMemory();
  std::unique_lock<std::mutex> lock(mutex_);
  // Ended by the job's owner: by the release, at the latest by its destructor.
  dependencies_.clock->WaitUntil(lock, changed_, absl::InfiniteFuture(),
                                 [this] { return !cancelled_.ok(); });
}

ExecutorOptions StageJob::MakeExecutorOptions() {
  ExecutorOptions options;
  options.spec = &assignment_.spec;
  options.graph = &plan_.graph;
  options.epoch = assignment_.epoch;
  options.stage = plan_.stage;
  options.replica = plan_.replica;
  options.range = plan_.ranges[plan_.stage];
  options.ranges = plan_.ranges;
  options.shape = plan_.shape;
  options.program = plan_.program;
  options.evaluation_shape = plan_.evaluation_shape;
  options.evaluation_program = plan_.evaluation_program;
  options.links = plan_.links;
  options.wait_max = kPeerBusyMax;
  options.collective = replicas_.collective();
  options.gradient_tree = gradient_tree_.get();
  options.check_cancelled = [this] { return CheckCancelled(); };
  return options;
}

absl::Status StageJob::TrainSteps(Exchange& exchange) {
  const run::RunSpec& spec = assignment_.spec;
  LH_ASSIGN_OR_RETURN(
      const std::unique_ptr<StageExecutor> executor,
      StageExecutor::Create(MakeExecutorOptions(), stage_.get(), &exchange,
                            plan_.is_first || plan_.is_last ? &*batches_ : nullptr,
                            assignment_.stage == 0 ? &directives_ : nullptr, dependencies_.clock));
  DivergenceWatch divergence(plan_.graph, *stage_, assignment_.start_step, spec.train.steps);
  for (int64_t step = assignment_.start_step + 1; step <= spec.train.steps; ++step) {
    divergence.BeforeStep();
    LH_ASSIGN_OR_RETURN(const StepResult result, executor->RunStep(step));
    LH_ASSIGN_OR_RETURN(const std::optional<Divergence> diverged, divergence.AfterStep(result));
    {
      std::lock_guard<std::mutex> lock(mutex_);
      completed_step_ = step;
    }
    LH_ASSIGN_OR_RETURN(const StepReport report, MakeReport(*executor, result));
    outbox_.AddReport(report);
    if (diverged) {
      divergence_ = diverged->order;
      return absl::FailedPreconditionError(diverged->text);
    }
    const bool last = step == spec.train.steps || result.directive == Directive::kStop;
    const bool due = spec.checkpoint_every > 0 && step % spec.checkpoint_every == 0;
    if (last || due) LH_RETURN_IF_ERROR(Save(step, last));
    if (last) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<StepReport> StageJob::MakeReport(StageExecutor& executor, const StepResult& result) {
  const run::TrainSpec& train = assignment_.spec.train;
  StepReport report;
  report.run = assignment_.run;
  report.epoch = assignment_.epoch;
  report.stage = assignment_.stage;
  report.stages = static_cast<int>(assignment_.stages.size());
  report.step = result.step;
  report.applied = result.applied;
  if (result.tokens > 0) report.loss = result.loss_sum / static_cast<double>(result.tokens);
  report.gradient_norm = result.gradient_norm;
  report.learning_rate = result.learning_rate;
  report.tokens = result.tokens;
  report.total_seconds = result.timings.total;
  report.compute_seconds = result.timings.compute;
  report.wait_seconds = result.timings.wait;
  if (!result.applied) {
    Log(LogLevel::kWarning, absl::StrCat("step ", result.step, " was skipped: ",
                                         result.tokens == 0 ? "no token of its batch is a target"
                                                            : "the gradient norm is not finite"));
  }
  const bool due = train.evaluate_every > 0 &&
                   (result.step % train.evaluate_every == 0 || result.step == train.steps);
  if (!due) return report;
  LH_ASSIGN_OR_RETURN(const EvaluationResult evaluation, executor.Evaluate(result.step));
  report.has_validation = true;
  if (evaluation.targets > 0) {
    report.validation_loss = evaluation.loss_sum / static_cast<double>(evaluation.targets);
  }
  return report;
}

void StageJob::End(int64_t step) {
  SetPhase("ended");
  outbox_.Add(assignment_.run, assignment_.epoch,
              Ended{assignment_.run, assignment_.epoch, assignment_.stage, step});
}

absl::Status StageJob::CheckCancelled() {
  std::lock_guard<std::mutex> lock(mutex_);
  return OwnCopy(cancelled_);
}

void StageJob::SetPhase(const std::string& phase) {
  std::lock_guard<std::mutex> lock(mutex_);
  phase_ = phase;
}

void StageJob::Log(LogLevel level, const std::string& text) const {
  dependencies_.log(level, absl::StrCat("run=", assignment_.run, " epoch=",
                                        ToString(assignment_.epoch), " ", name(), ": ", text));
}

}  // namespace longhaul::worker
