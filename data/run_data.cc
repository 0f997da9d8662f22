#include "data/run_data.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/batches.h"

namespace longhaul::data {
namespace {

TokenFormat FormatOf(run::Tokenizer tokenizer) {
  switch (tokenizer) {
    case run::Tokenizer::kBytes:
      break;
    case run::Tokenizer::kUint16:
      return TokenFormat::kUint16;
    case run::Tokenizer::kUint32:
      return TokenFormat::kUint32;
  }
  return TokenFormat::kBytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenSource>> OpenTokens(const std::string& path,
                                                        const run::DataSpec& spec) {
  return TokenSource::Open(path, FormatOf(spec.tokenizer));
}

absl::Status CheckTokens(const TokenSource& tokens, const run::RunSpec& spec) {
  LH_RETURN_IF_ERROR(
      SplitTokens(tokens.size(), spec.data.validation_fraction, spec.model.context).status());
  const int64_t largest = tokens.MaxToken();
  if (largest < spec.model.vocab) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data holds token ", largest,
                                                 ", but model.vocab is ", spec.model.vocab,
                                                 "; set model.vocab to at least ", largest + 1));
}

}  // namespace longhaul::data
