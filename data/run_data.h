// The data of a run, as its specification names them.
#ifndef LONGHAUL_DATA_RUN_DATA_H_
#define LONGHAUL_DATA_RUN_DATA_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/token_source.h"
#include "run/run_spec.h"

namespace longhaul::data {

// The file at `path` read with the run's tokenizer.
absl::StatusOr<std::unique_ptr<TokenSource>> OpenTokens(const std::string& path,
                                                        const run::DataSpec& spec);

// Long enough for the run's context in each part, and no token exceeds the vocabulary. The error
// has the numbers and says what to change. Reads the whole file once.
absl::Status CheckTokens(const TokenSource& tokens, const run::RunSpec& spec);

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_RUN_DATA_H_
