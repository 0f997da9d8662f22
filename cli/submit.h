// From a run's file to a run: everything that can be checked before the coordinator is asked.
#ifndef LONGHAUL_CLI_SUBMIT_H_
#define LONGHAUL_CLI_SUBMIT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/hugging_face.h"
#include "data/dataset.h"
#include "run/run_spec.h"

namespace longhaul::cli {

// A run that is ready to be submitted.
struct Submission {
  // One file and its content address.
  struct Upload {
    std::string path;
    data::DatasetIndex index;
  };
  run::RunSpec spec;  // data.id, data.tokens and, for Megatron's pair, data.index_id are set
  // The token file, then its index if it has one, then the tokenizer's files of model.from.
  std::vector<Upload> uploads;
  // Where the run's file says `model: {from: DIR}`.
  std::optional<checkpoint::ModelWeights> weights = std::nullopt;
};

// Reads and checks the run's file. NotFound or InvalidArgument names file, line and key.
absl::StatusOr<run::RunSpec> ReadRunFile(const std::string& path);

// Reads the run's file and its training file or files (a relative path counts from the run's file):
// tokens within the vocabulary, long enough for one context in each part, documents marked where
// data.documents needs them; computes the content addresses.
// Reads the weights and the tokenizer of `model: {from: DIR}`, too.
absl::StatusOr<Submission> PrepareSubmission(const std::string& path);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_SUBMIT_H_
