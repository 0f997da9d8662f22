// A run as plain data: everything that decides its result, and what the user asked of its
// execution. Made from the user's file by the command line, checked again by the coordinator,
// stored and sent as JSON.
#ifndef LONGHAUL_RUN_RUN_SPEC_H_
#define LONGHAUL_RUN_RUN_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/family.h"
#include "model/precision.h"

namespace longhaul::run {

// How bytes of a training file become tokens. kAuto: by what the file begins with.
enum class Tokenizer { kAuto, kBytes, kUint16, kUint32, kMegatron };

// What batches make of the documents that the tokens consist of.
enum class DocumentMode {
  kPacked,    // nothing: sequences are cut from the stream of all tokens
  kMasked,    // as packed, but the first token of a document is no target
  kSeparate,  // a sequence has tokens of one document only, and padding behind its end
};

inline constexpr int64_t kNoEndOfDocument = -1;

struct DataSpec {
  std::string train;  // path as the user wrote it; only the command line opens it
  Tokenizer tokenizer = Tokenizer::kAuto;
  double validation_fraction = 0;  // the last part by position
  std::string id;                  // content address (data/dataset.h), set when uploaded
  int64_t tokens = 0;              // in the data set, set when uploaded
  std::string index_id = "";       // of Megatron's index, likewise; empty for other formats
  DocumentMode documents = DocumentMode::kPacked;
  // The token that ends each document; kNoEndOfDocument: none does.
  int64_t end_of_document = kNoEndOfDocument;
  bool operator==(const DataSpec&) const = default;
};

struct OptimizerSpec {
  std::string name = "adamw";
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double grad_clip = 1.0;  // 0: no clipping
  bool operator==(const OptimizerSpec&) const = default;
};

enum class Decay { kConstant, kCosine };

struct LearningRateSchedule {
  int64_t warmup_steps = 0;
  Decay decay = Decay::kConstant;
  double min_learning_rate = 0;
  bool operator==(const LearningRateSchedule&) const = default;
};

struct TrainSpec {
  int64_t steps = 0;
  int64_t global_batch = 0;  // sequences per step
  int64_t micro_batch = 0;   // sequences per micro-batch
  OptimizerSpec optimizer;
  LearningRateSchedule schedule;
  uint64_t seed = 1;
  int64_t evaluate_every = 0;  // 0: never
  // What cards compute in; processors always compute in fp32.
  model::Precision precision = model::Precision::kBFloat16;
  int64_t micro_batches() const { return global_batch / micro_batch; }
  bool operator==(const TrainSpec&) const = default;
};

// Whether stages make activations inside blocks again in backward: those that do not fit otherwise,
// all, none.
enum class Recompute { kAuto, kAlways, kNever };

struct RunSpec {
  std::string name;
  model::ModelSpec model;
  DataSpec data;
  TrainSpec train;
  int64_t stages = 0;  // 0: auto
  // Nodes that hold the same stage: one number for all stages (0: auto), or one for each.
  std::vector<int64_t> replicas = {1};
  // Gradients are summed over a fixed tree of micro-batches, and so have the same bits for every
  // number of replicas that this allows.
  bool exact_replicas = false;
  // Nodes of several numeric classes may take part; the bits then depend on where each stage runs.
  bool any_numeric_class = false;
  std::string schedule = "1f1b";  // gpipe | 1f1b
  Recompute recompute = Recompute::kAuto;
  std::string codec = "none";    // auto is the planner's choice
  int64_t checkpoint_every = 0;  // 0: only when the run stops or ends
  // The Hugging Face directory that the model and its first weights came from, as the user wrote
  // it; only the command line opens it. Empty: weights are drawn.
  std::string from;
  // Files of its tokenizer, as "NAME ID" with the content address (data/dataset.h) under which the
  // coordinator keeps them; exports pass them through.
  std::vector<std::string> tokenizer_files;
  bool operator==(const RunSpec&) const = default;
};

// Whether `exact_replicas` allows so many: it, and the micro-batches that each takes, must be
// powers of two; one is always allowed.
bool AllowsExactReplicas(int64_t micro_batches, int64_t replicas);

// What `schedule` and `codec` may say; for messages and for the tests that keep them in step with
// the schedules and codecs that exist.
std::vector<std::string> ScheduleNames();
std::vector<std::string> CodecNames();

// Ranges and relations (heads divide hidden, micro_batch divides global_batch, names safe, schedule
// and codec known). InvalidArgument names the key and what would be right.
absl::Status Validate(const RunSpec& spec);

// A run's file (YAML). Unknown keys are errors that name the line and the nearest known key; wrong
// types and ranges name the line and the key. `file_name` is for messages.
absl::StatusOr<RunSpec> ParseRunFile(absl::string_view yaml, absl::string_view file_name);

// JSON with a schema version, both ways; `spec` must be valid, and parsing validates.
std::string ToJson(const RunSpec& spec);
absl::StatusOr<RunSpec> FromJson(absl::string_view json);

// Learning rate of 1-based `step`: linear warm-up to learning_rate over warmup_steps, then constant
// or a half cosine down to min_learning_rate at the last step.
// The same bits on every IEEE machine, since those of the weights follow from it.
double LearningRate(const TrainSpec& train, int64_t step);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_RUN_SPEC_H_
