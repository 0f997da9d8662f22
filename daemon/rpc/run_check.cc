#include "daemon/rpc/run_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/run_data.h"

namespace longhaul::daemon {

absl::Status CheckRunData(const run::RunSpec& spec, const data::DatasetStore& datasets) {
  std::vector<std::string> ids = {spec.data.id};
  if (!spec.data.index_id.empty()) ids.push_back(spec.data.index_id);
  for (const std::string& id : ids) {
    const absl::Status good = datasets.Verify(id);
    if (good.ok()) continue;
    return absl::FailedPreconditionError(absl::StrCat("data set '", id,
                                                      "' is not at the coordinator; upload it "
                                                      "first: ",
                                                      good.message()));
  }
  for (const std::string& file : spec.tokenizer_files) {
    if (datasets.Verify(file.substr(file.find(' ') + 1)).ok()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the tokenizer's file '", file, "' is not at the coordinator; upload it first"));
  }
  LH_ASSIGN_OR_RETURN(const data::RunTokens tokens,
                      data::OpenTokens(data::StoredFiles(datasets, spec.data), spec.data));
  if (tokens.source->size() != spec.data.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", spec.data.id, " has ", tokens.source->size(),
                     " tokens as data.tokenizer reads it, but data.tokens is ", spec.data.tokens));
  }
  return data::CheckTokens(tokens, spec);
}

}  // namespace longhaul::daemon
