#include "daemon/rpc/run_check.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/run_data.h"

namespace longhaul::daemon {

absl::Status CheckRunData(const run::RunSpec& spec, const data::DatasetStore& datasets) {
  if (!IsSha256Hex(spec.data.id) || !datasets.Has(spec.data.id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("data set '", spec.data.id, "' is not at the coordinator; upload it first"));
  }
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<data::TokenSource> tokens,
                      data::OpenTokens(datasets.DataPath(spec.data.id), spec.data));
  if (tokens->size() != spec.data.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", spec.data.id, " has ", tokens->size(),
                     " tokens as data.tokenizer reads it, but data.tokens is ", spec.data.tokens));
  }
  return data::CheckTokens(*tokens, spec);
}

}  // namespace longhaul::daemon
