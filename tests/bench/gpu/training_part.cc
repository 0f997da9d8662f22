#include "tests/bench/gpu/training_part.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/device_facts.h"
#include "model/cost.h"
#include "tests/bench/gpu/peak_rate.h"
#include "tests/bench/gpu/report.h"
#include "tests/bench/gpu/trainer.h"

namespace longhaul::gpu_check {
namespace {

constexpr int kMicroBatches = 4;     // of a step
constexpr double kFreeShare = 0.95;  // of the card's free memory, that a plan may fill

model::StageMemory Planned(const model::Graph& graph, const TrainerOptions& options) {
  return model::MemoryOf(graph, {0, static_cast<int>(graph.ops.size())}, options.micro_batch, 1,
                         options.recompute, options.precision);
}

// With the largest micro-batch that fits, and recomputation where one alone does not.
absl::StatusOr<TrainerOptions> Fitting(const CheckedModel& model, model::Precision precision,
                                       int64_t free_bytes) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(model.spec));
  TrainerOptions options{.spec = model.spec,
                         .micro_batches = kMicroBatches,
                         .precision = precision,
                         .quick_weights = true};
  for (const bool recompute : {false, true}) {
    options.recompute = recompute;
    for (options.micro_batch = model.micro_batch_max; options.micro_batch >= 1;
         options.micro_batch /= 2) {
      const double needed = static_cast<double>(Planned(graph, options).total());
      if (needed <= kFreeShare * static_cast<double>(free_bytes)) return options;
    }
  }
  options.micro_batch = 1;
  return absl::ResourceExhaustedError(
      absl::StrCat(model.name, " needs ", Planned(graph, options).total() >> 20,
                   " MiB, and of the card ", free_bytes >> 20, " MiB are free"));
}

TokenBatch SomeTokens(int64_t tokens, int64_t vocab, int64_t m) {
  TokenBatch batch;
  for (int64_t i = 0; i < tokens; ++i) {
    batch.tokens.push_back(static_cast<int32_t>((m + i) * 7919 % vocab));
    batch.targets.push_back(static_cast<int32_t>((m + i + 1) * 7919 % vocab));
  }
  return batch;
}

double Seconds() { return absl::ToDoubleSeconds(RealClock().Now() - absl::UnixEpoch()); }

// Median seconds of a step, over rounds of a second.
absl::StatusOr<double> StepSeconds(Trainer& trainer, const std::vector<TokenBatch>& batches,
                                   bool tiny) {
  const auto round = [&](int steps) -> absl::StatusOr<double> {
    const double start = Seconds();
    for (int i = 0; i < steps; ++i) {
      LH_ASSIGN_OR_RETURN(const double loss, trainer.Step(batches));
      if (!std::isfinite(loss)) return absl::InternalError("the loss is no number");
    }
    return (Seconds() - start) / steps;
  };
  LH_RETURN_IF_ERROR(round(tiny ? 1 : 3).status());
  LH_ASSIGN_OR_RETURN(const double first, round(1));
  const int steps = tiny ? 1 : std::max(1, static_cast<int>(std::lround(1 / first)));
  std::vector<double> seconds;
  for (int i = 0; i < (tiny ? 1 : 5); ++i) {
    LH_ASSIGN_OR_RETURN(seconds.emplace_back(), round(steps));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Trains a model of the kind that is too small to matter, so that CUDA and its libraries have
// loaded what they need: what is free afterwards is for the model.
absl::Status WarmUp(compute::Backend& backend, const CheckedModel& model,
                    model::Precision precision) {
  TrainerOptions options{.spec = FindModel(model.name, /*tiny=*/true)->spec,
                         .micro_batch = 1,
                         .precision = precision,
                         .quick_weights = true};
  LH_ASSIGN_OR_RETURN(const auto trainer, Trainer::Make(options, backend));
  return trainer->Step({SomeTokens(trainer->tokens(), options.spec.vocab, 0)}).status();
}

void PrintMemory(const CheckedModel& model, double planned, double used) {
  constexpr double kMebibyte = 1 << 20;
  PrintRow("memory", model.name,
           {{"planned, MiB", planned / kMebibyte},
            {"used, MiB", used / kMebibyte},
            {"apart", std::abs(used / planned - 1), "<= 0.1"}});
}

}  // namespace

absl::Status CheckTraining(compute::Backend& backend, int device, const CheckedModel& model,
                           bool tiny) {
  const model::Precision precision =
      backend.has_bfloat16() ? model::Precision::kBFloat16 : model::Precision::kFloat32;
  LH_RETURN_IF_ERROR(WarmUp(backend, model, precision));
  LH_ASSIGN_OR_RETURN(const compute::CudaMemory before, compute::ReadCudaMemory(device));
  LH_ASSIGN_OR_RETURN(const TrainerOptions options, Fitting(model, precision, before.free_bytes));
  LH_ASSIGN_OR_RETURN(const auto trainer, Trainer::Make(options, backend));
  const std::string& attention = trainer->attention_kernel();
  PrintNote(absl::StrCat(model.name, ": kernel of attention: ", attention));
  const bool by_library = !absl::StartsWith(attention, "own");
  std::vector<TokenBatch> batches;
  for (int m = 0; m < kMicroBatches; ++m) {
    batches.push_back(SomeTokens(trainer->tokens(), model.spec.vocab, m));
  }
  LH_ASSIGN_OR_RETURN(const double seconds, StepSeconds(*trainer, batches, tiny));
  LH_ASSIGN_OR_RETURN(const compute::CudaMemory after, compute::ReadCudaMemory(device));
  LH_ASSIGN_OR_RETURN(const compute::CudaDeviceFacts card, compute::ReadCudaDevice(device));

  const double rate = kMicroBatches * static_cast<double>(trainer->tokens()) / seconds;
  double peak = PeakRate(card.name);
  if (peak == 0) {
    PrintNote(absl::StrCat("the peak of a ", card.name,
                           " is not known: its share is of the rate of a large product"));
    const Effort effort = EffortOf(tiny);
    peak = backend.has_bfloat16() ? MeasureCard<compute::BFloat16>(backend, effort).flops
                                  : MeasureCard<float>(backend, effort).flops;
  }
  const std::string target =
      model.peak_share > 0 && !tiny ? absl::StrCat(">= ", model.peak_share) : "-";
  PrintRow("training", absl::StrCat(model.name, " ", model::NameOf(precision)),
           {{"micro-batch", static_cast<double>(options.micro_batch)},
            {"recompute", options.recompute ? 1.0 : 0.0},
            {"attention by cuDNN", by_library ? 1.0 : 0.0, tiny ? "-" : ">= 1"},
            {"tokens/s", rate},
            {"of peak", rate * trainer->FlopsOfToken() / peak, target}});
  const model::ModelSpec& spec = model.spec;
  PrintShape(model.name, {spec.layers, spec.hidden, spec.heads, spec.context, spec.vocab,
                          model.full.ffn, options.micro_batch, kMicroBatches});
  PrintMemory(model, static_cast<double>(Planned(trainer->graph(), options).total()),
              static_cast<double>(before.free_bytes - after.free_bytes));
  return absl::OkStatus();
}

}  // namespace longhaul::gpu_check
