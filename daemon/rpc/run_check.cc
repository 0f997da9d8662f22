#include "daemon/rpc/run_check.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "data/batches.h"
#include "data/token_source.h"

namespace longhaul::daemon {
namespace {

data::TokenFormat FormatOf(run::Tokenizer tokenizer) {
  switch (tokenizer) {
    case run::Tokenizer::kBytes:
      break;
    case run::Tokenizer::kUint16:
      return data::TokenFormat::kUint16;
    case run::Tokenizer::kUint32:
      return data::TokenFormat::kUint32;
  }
  return data::TokenFormat::kBytes;
}

}  // namespace

absl::Status CheckRunData(const run::RunSpec& spec, const data::DatasetStore& datasets) {
  if (!IsSha256Hex(spec.data.id) || !datasets.Has(spec.data.id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("data set '", spec.data.id, "' is not at the coordinator; upload it first"));
  }
  LH_ASSIGN_OR_RETURN(
      const std::unique_ptr<data::TokenSource> tokens,
      data::TokenSource::Open(datasets.DataPath(spec.data.id), FormatOf(spec.data.tokenizer)));
  if (tokens->size() != spec.data.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", spec.data.id, " has ", tokens->size(),
                     " tokens as data.tokenizer reads it, but data.tokens is ", spec.data.tokens));
  }
  LH_RETURN_IF_ERROR(
      data::SplitTokens(tokens->size(), spec.data.validation_fraction, spec.model.context)
          .status());
  const int64_t largest = tokens->MaxToken();
  if (largest < spec.model.vocab) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data holds token ", largest,
                                                 ", but model.vocab is ", spec.model.vocab,
                                                 "; set model.vocab to at least ", largest + 1));
}

}  // namespace longhaul::daemon
