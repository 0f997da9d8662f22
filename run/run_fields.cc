#include "run/run_fields.h"

#include "base/limits.h"
#include "model/family.h"
#include "model/limits.h"

namespace longhaul::run {
namespace {

constexpr int64_t kStepsMax = 1'000'000'000;
constexpr int64_t kSequencesMax = 1 << 20;
constexpr int64_t kStagesMax = 1024;
// Beyond any use, yet far from the limits of the single precision that optimizers compute in.
constexpr double kRateMax = 1e3;
constexpr double kNormMax = 1e9;
constexpr double kEpsilonMin = 1e-30;
constexpr double kThetaMax = 1e12;
constexpr double kFactorMax = 1e6;
constexpr size_t kTokenizerFilesMax = 32;

void AddModel(RunSpec& spec, std::vector<Field>& fields) {
  model::ModelSpec& model = spec.model;
  const auto required = Presence::kRequired;
  fields.push_back({"model.family", Text{&model.family, model::FamilyNames()}});
  fields.push_back({"model.layers", Whole{&model.layers, 1, model::kLayersMax}, required});
  fields.push_back({"model.hidden", Whole{&model.hidden, 1, model::kHiddenMax}, required});
  fields.push_back({"model.heads", Whole{&model.heads, 1, model::kHiddenMax}, required});
  fields.push_back({"model.context", Whole{&model.context, 1, model::kContextMax}, required});
  fields.push_back({"model.vocab", Whole{&model.vocab, 1, model::kVocabMax}, required});
  fields.push_back({"model.tied", Flag{&model.tied}});
  fields.push_back({"model.kv_heads", Whole{&model.kv_heads, 1, model::kHiddenMax, "auto"}});
  fields.push_back({"model.ffn", Whole{&model.ffn, 1, model::kFeedForwardMax, "auto"}});
  fields.push_back({"model.qkv_bias", Flag{&model.qkv_bias}});
  fields.push_back({"model.norm_epsilon", Real{&model.norm_epsilon, 0, 1, true, true}});
  fields.push_back({"model.rope_theta", Real{&model.rope_theta, 1, kThetaMax, true}});
  model::RotaryScaling& scaling = model.rope_scaling;
  fields.push_back({"model.rope_scaling.factor", Real{&scaling.factor, 1, kFactorMax}});
  fields.push_back({"model.rope_scaling.low_frequency_factor",
                    Real{&scaling.low_frequency_factor, 0, kFactorMax, true}});
  fields.push_back({"model.rope_scaling.high_frequency_factor",
                    Real{&scaling.high_frequency_factor, 0, kFactorMax, true}});
  fields.push_back({"model.rope_scaling.original_context",
                    Whole{&scaling.original_context, 1, model::kContextMax}});
  // In a file the name of another file, in a stored run what that held.
  fields.push_back({"model.graph", Text{&model.graph, {}, /*empty_allowed=*/true}});
  fields.push_back({"model.from", Text{&spec.from, {}, /*empty_allowed=*/true}});
  fields.push_back({"model.dropout", Real{&model.dropout, 0, 1, false, true}});
}

void AddData(DataSpec& data, std::vector<Field>& fields) {
  fields.push_back({"data.train", Text{&data.train}, Presence::kRequired});
  fields.push_back(
      {"data.tokenizer", Enum(&data.tokenizer, {"auto", "bytes", "uint16", "uint32", "megatron"})});
  fields.push_back({"data.validation_fraction", Real{&data.validation_fraction, 0, 0.5}});
  fields.push_back({"data.documents", Enum(&data.documents, {"packed", "masked", "separate"})});
  fields.push_back({"data.end_of_document",
                    Whole{&data.end_of_document, kNoEndOfDocument, model::kVocabMax - 1}});
}

void AddTrain(TrainSpec& train, std::vector<Field>& fields) {
  const auto required = Presence::kRequired;
  OptimizerSpec& optimizer = train.optimizer;
  LearningRateSchedule& schedule = train.schedule;
  fields.push_back({"train.steps", Whole{&train.steps, 1, kStepsMax}, required});
  fields.push_back({"train.global_batch", Whole{&train.global_batch, 1, kSequencesMax}, required});
  fields.push_back({"train.micro_batch", Whole{&train.micro_batch, 1, kSequencesMax}, required});
  fields.push_back({"train.optimizer.name", Text{&optimizer.name, {"adamw"}}});
  fields.push_back(
      {"train.optimizer.learning_rate", Real{&optimizer.learning_rate, 0, kRateMax, true}});
  fields.push_back({"train.optimizer.betas", Reals{{{&optimizer.beta1, 0, 1, false, true},
                                                    {&optimizer.beta2, 0, 1, false, true}}}});
  fields.push_back({"train.optimizer.epsilon", Real{&optimizer.epsilon, kEpsilonMin, 1}});
  fields.push_back({"train.optimizer.weight_decay", Real{&optimizer.weight_decay, 0, kRateMax}});
  fields.push_back({"train.optimizer.grad_clip", Real{&optimizer.grad_clip, 0, kNormMax}});
  fields.push_back({"train.schedule.warmup_steps", Whole{&schedule.warmup_steps, 0, kStepsMax}});
  fields.push_back({"train.schedule.decay", Enum(&schedule.decay, {"constant", "cosine"})});
  fields.push_back(
      {"train.schedule.min_learning_rate", Real{&schedule.min_learning_rate, 0, kRateMax}});
  fields.push_back({"train.seed", Unsigned{&train.seed}});
  fields.push_back({"train.evaluate_every", Whole{&train.evaluate_every, 0, kStepsMax}});
  fields.push_back(
      {"train.precision", Enum(&train.precision, {NameOf(model::Precision::kFloat32),
                                                  NameOf(model::Precision::kBFloat16)})});
}

}  // namespace

std::vector<std::string> ScheduleNames() { return {"gpipe", "1f1b"}; }

std::vector<std::string> CodecNames() { return {"auto", "none", "zstd", "bf16", "int8"}; }

std::vector<Field> FileFields(RunSpec& spec) {
  std::vector<Field> fields = {{"name", Text{&spec.name}, Presence::kRequired}};
  AddModel(spec, fields);
  AddData(spec.data, fields);
  AddTrain(spec.train, fields);
  fields.push_back({"pipeline.stages", Whole{&spec.stages, 1, kStagesMax, "auto"}});
  fields.push_back({"pipeline.replicas", Wholes{&spec.replicas, 1, kReplicasMax,
                                                static_cast<size_t>(kStagesMax), "auto"}});
  fields.push_back({"pipeline.exact_replicas", Flag{&spec.exact_replicas}});
  fields.push_back({"pipeline.numeric_class", Enum(&spec.any_numeric_class, {"one", "any"})});
  fields.push_back({"pipeline.schedule", Text{&spec.schedule, ScheduleNames()}});
  fields.push_back({"pipeline.recompute", Enum(&spec.recompute, {"auto", "always", "never"})});
  fields.push_back({"exchange.codec", Text{&spec.codec, CodecNames()}});
  fields.push_back({"checkpoint.every", Whole{&spec.checkpoint_every, 0, kStepsMax}});
  return fields;
}

std::vector<Field> StoredFields(RunSpec& spec) {
  std::vector<Field> fields = FileFields(spec);
  fields.push_back({"data.id", Text{&spec.data.id, {}, /*empty_allowed=*/true}});
  fields.push_back({"model.tokenizer_files", Texts{&spec.tokenizer_files, kTokenizerFilesMax}});
  fields.push_back({"data.tokens", Whole{&spec.data.tokens, 0, int64_t{1} << 50}});
  fields.push_back({"data.index_id", Text{&spec.data.index_id, {}, /*empty_allowed=*/true}});
  return fields;
}

}  // namespace longhaul::run
