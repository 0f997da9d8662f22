#include "daemon/rpc/run_check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/run_data.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kPassedMax = 256;

absl::Status CheckStored(const run::RunSpec& spec, const data::DatasetStore& datasets) {
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
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStoredTokens(const run::RunSpec& spec, const data::DatasetStore& datasets) {
  LH_ASSIGN_OR_RETURN(const data::RunTokens tokens,
                      data::OpenTokens(data::StoredFiles(datasets, spec.data), spec.data));
  if (tokens.source->size() != spec.data.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", spec.data.id, " has ", tokens.source->size(),
                     " tokens as data.tokenizer reads it, but data.tokens is ", spec.data.tokens));
  }
  return data::CheckTokens(tokens, spec);
}

RunDataCheck::RunDataCheck(const data::DatasetStore& datasets, TokenCheck check)
    : datasets_(datasets), check_(std::move(check)) {}

absl::Status RunDataCheck::Check(const run::RunSpec& spec) {
  LH_RETURN_IF_ERROR(CheckStored(spec, datasets_));
  Passed wanted = {spec.data, spec.model.context, spec.model.vocab};
  wanted.data.train.clear();  // a path of the client's
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(passed_.begin(), passed_.end(), wanted) != passed_.end()) return absl::OkStatus();
  }
  LH_RETURN_IF_ERROR(check_(spec, datasets_));
  std::lock_guard<std::mutex> lock(mutex_);
  passed_.push_back(std::move(wanted));
  if (passed_.size() > kPassedMax) passed_.pop_front();
  return absl::OkStatus();
}

}  // namespace longhaul::daemon
