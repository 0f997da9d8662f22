#include "run/run_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/elementary.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "model/limits.h"
#include "run/run_fields.h"

namespace longhaul::run {
namespace {

// "model.KEY: what" names the key; anything else is about the model as a whole.
Problem ModelProblem(const absl::Status& status) {
  const std::string message(status.message());
  const size_t colon = message.find(": ");
  if (message.rfind("model.", 0) != 0 || colon == std::string::npos) return {"model", message};
  return {message.substr(0, colon), message.substr(colon + 2)};
}

std::optional<Problem> FindModelProblem(const RunSpec& spec) {
  const model::ModelSpec& model = spec.model;
  if (model.hidden % model.heads != 0) {
    return Problem{"model.heads", absl::StrCat("must divide model.hidden (", model.hidden,
                                               "), got ", model.heads)};
  }
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(model);
  if (!graph.ok()) return ModelProblem(graph.status());
  if (!model.graph.empty() && !model::Repeats(model, *graph)) {
    return Problem{"model.graph",
                   "has other layers, widths, context or vocabulary than the model's "
                   "keys beside it, which must repeat it"};
  }
  const int64_t stages_max = static_cast<int64_t>(graph->CutPoints().size()) + 1;
  if (spec.stages > stages_max) {
    return Problem{"pipeline.stages",
                   absl::StrCat("must be at most ", stages_max,
                                ", since the model cannot be cut into more; got ", spec.stages)};
  }
  if (spec.train.micro_batch > model::kRowsMax / model.context) {
    return Problem{"train.micro_batch",
                   absl::StrCat("times model.context must be at most ", model::kRowsMax,
                                " tokens, got ", spec.train.micro_batch, " times ", model.context)};
  }
  return std::nullopt;
}

std::optional<Problem> FindDataProblem(const RunSpec& spec) {
  const DataSpec& data = spec.data;
  for (const auto& [key, id] :
       {std::pair{"data.id", &data.id}, {"data.index_id", &data.index_id}}) {
    if (!id->empty() && !IsSha256Hex(*id)) return Problem{key, "must be 64 hexadecimal digits"};
  }
  if (!data.index_id.empty() && data.tokenizer != Tokenizer::kMegatron) {
    return Problem{"data.index_id", "is only for data.tokenizer: megatron"};
  }
  if (data.index_id.empty() && !data.id.empty() && data.tokenizer == Tokenizer::kMegatron) {
    return Problem{"data.index_id", "is missing, but data.tokenizer is megatron"};
  }
  if (data.end_of_document >= spec.model.vocab) {
    return Problem{"data.end_of_document",
                   absl::StrCat("must be a token below model.vocab (", spec.model.vocab, "), got ",
                                data.end_of_document)};
  }
  return std::nullopt;
}

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::optional<Problem> FindReplicasProblem(const RunSpec& spec) {
  const int64_t micro_batches = spec.train.micro_batches();
  if (spec.replicas.size() > 1 && static_cast<int64_t>(spec.replicas.size()) != spec.stages) {
    return Problem{
        "pipeline.replicas",
        absl::StrCat("must be a number, auto or one number for each of pipeline.stages (",
                     spec.stages == 0 ? "auto" : absl::StrCat(spec.stages), "), got ",
                     spec.replicas.size(), " numbers")};
  }
  for (const int64_t replicas : spec.replicas) {
    if (replicas > micro_batches) {
      return Problem{"pipeline.replicas",
                     absl::StrCat("must be at most the micro-batches of a step (train.global_batch "
                                  "/ train.micro_batch = ",
                                  micro_batches, "), got ", replicas)};
    }
    if (spec.exact_replicas && replicas > 0 && !AllowsExactReplicas(micro_batches, replicas)) {
      return Problem{"pipeline.exact_replicas",
                     absl::StrCat("needs a power of two of replicas with a power of two of "
                                  "micro-batches each, got ",
                                  replicas, " replicas and ", micro_batches, " micro-batches")};
    }
  }
  return std::nullopt;
}

std::optional<Problem> FindTokenizerProblem(const RunSpec& spec) {
  for (const std::string& entry : spec.tokenizer_files) {
    const size_t blank = entry.find(' ');
    const bool good = blank != std::string::npos &&
                      ValidateName("tokenizer file", entry.substr(0, blank)).ok() &&
                      IsSha256Hex(entry.substr(blank + 1));
    if (!good) return Problem{"model.tokenizer_files", "must be names with content addresses"};
  }
  return std::nullopt;
}

std::optional<Problem> FindTrainProblem(const RunSpec& spec) {
  const TrainSpec& train = spec.train;
  if (train.global_batch % train.micro_batch != 0) {
    return Problem{"train.micro_batch",
                   absl::StrCat("must divide train.global_batch (", train.global_batch, "), got ",
                                train.micro_batch)};
  }
  if (train.schedule.warmup_steps > train.steps) {
    return Problem{"train.schedule.warmup_steps",
                   absl::StrCat("must be at most train.steps (", train.steps, "), got ",
                                train.schedule.warmup_steps)};
  }
  if (train.schedule.min_learning_rate > train.optimizer.learning_rate) {
    return Problem{
        "train.schedule.min_learning_rate",
        absl::StrCat("must be at most train.optimizer.learning_rate (",
                     train.optimizer.learning_rate, "), got ", train.schedule.min_learning_rate)};
  }
  if (train.evaluate_every > 0 && spec.data.validation_fraction == 0) {
    return Problem{"train.evaluate_every",
                   "needs tokens to evaluate on: set data.validation_fraction above 0"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> FindProblem(const RunSpec& spec) {
  RunSpec copy = spec;  // fields are bound to what may be changed
  if (auto problem = CheckFields(StoredFields(copy))) return problem;
  if (const absl::Status name = ValidateName("run name", spec.name); !name.ok()) {
    return Problem{"name", std::string(name.message())};
  }
  if (auto problem = FindTokenizerProblem(spec)) return problem;
  if (auto problem = FindModelProblem(spec)) return problem;
  if (auto problem = FindDataProblem(spec)) return problem;
  if (auto problem = FindTrainProblem(spec)) return problem;
  return FindReplicasProblem(spec);
}

bool AllowsExactReplicas(int64_t micro_batches, int64_t replicas) {
  return replicas == 1 || (IsPowerOfTwo(replicas) && micro_batches % replicas == 0 &&
                           IsPowerOfTwo(micro_batches / replicas));
}

absl::Status Validate(const RunSpec& spec) {
  const std::optional<Problem> problem = FindProblem(spec);
  if (!problem) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", problem->key, "': ", problem->message));
}

double LearningRate(const TrainSpec& train, int64_t step) {
  LH_CHECK(step >= 1, "step ", step);
  const double peak = train.optimizer.learning_rate;
  const int64_t warmup = train.schedule.warmup_steps;
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (train.schedule.decay == Decay::kConstant) return peak;
  const double minimum = train.schedule.min_learning_rate;
  if (step >= train.steps) return minimum;
  const double progress =
      static_cast<double>(step - warmup) / static_cast<double>(train.steps - warmup);
  return minimum + 0.5 * (1.0 + SineCosineOfTurns(0.5 * progress).cosine) * (peak - minimum);
}

}  // namespace longhaul::run
