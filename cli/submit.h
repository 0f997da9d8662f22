// From a run's file to a run: everything that can be checked before the coordinator is asked.
#ifndef LONGHAUL_CLI_SUBMIT_H_
#define LONGHAUL_CLI_SUBMIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "run/run_spec.h"

namespace longhaul::cli {

// A run that is ready to be submitted.
struct Submission {
  run::RunSpec spec;      // data.id and data.tokens are set
  std::string data_path;  // of the training file
  data::DatasetIndex index;
};

// Reads and checks the run's file. NotFound or InvalidArgument names file, line and key.
absl::StatusOr<run::RunSpec> ReadRunFile(const std::string& path);

// Reads the run's file and its training file (a relative path counts from the run's file): tokens
// within the vocabulary, long enough for one context in each part; computes the content address.
absl::StatusOr<Submission> PrepareSubmission(const std::string& path);

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_SUBMIT_H_
