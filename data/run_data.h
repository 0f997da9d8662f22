// The data of a run, as its specification names them.
#ifndef LONGHAUL_DATA_RUN_DATA_H_
#define LONGHAUL_DATA_RUN_DATA_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/documents.h"
#include "data/token_source.h"
#include "run/run_spec.h"

namespace longhaul::data {

// The files that hold a run's tokens.
struct DataFiles {
  std::string tokens;
  std::string index;  // Megatron's; empty for other formats
};

// Where `store` has them; the data set and its index, if it has one, must be complete there.
DataFiles StoredFiles(const DatasetStore& store, const run::DataSpec& spec);

struct RunTokens {
  std::unique_ptr<TokenSource> source;
  Documents documents;
};

// What data.train names, once `path` is where it is on this machine: one file, or Megatron's pair
// by either file or by the name without ".bin" and ".idx". Settles data.tokenizer: auto, by the
// index beside it or by what the file begins with: InvalidArgument for a .bin that tells nothing.
absl::StatusOr<DataFiles> FindDataFiles(const std::string& path, run::DataSpec& spec);

// The files read with the run's tokenizer, documents found as data.documents needs them. Errors
// name the file: a pair that does not belong together, documents that nothing marks.
absl::StatusOr<RunTokens> OpenTokens(const DataFiles& files, const run::DataSpec& spec);

// Long enough for the run's context in each part, no token exceeds the vocabulary, and each part
// has targets that count. The error has the numbers and says what to change. Reads the whole file
// once.
absl::Status CheckTokens(const RunTokens& tokens, const run::RunSpec& spec);

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_RUN_DATA_H_
