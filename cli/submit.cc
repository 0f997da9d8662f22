#include "cli/submit.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "data/batches.h"
#include "data/token_source.h"
#include "model/family.h"

namespace longhaul::cli {
namespace {

constexpr uint64_t kRunFileBytesMax = 1 << 20;

data::TokenFormat FormatOf(run::Tokenizer tokenizer) {
  switch (tokenizer) {
    case run::Tokenizer::kBytes:
      return data::TokenFormat::kBytes;
    case run::Tokenizer::kUint16:
      return data::TokenFormat::kUint16;
    case run::Tokenizer::kUint32:
      return data::TokenFormat::kUint32;
  }
  return data::TokenFormat::kBytes;
}

absl::Status CheckTokens(const data::TokenSource& tokens, const std::string& path,
                         const run::RunSpec& spec) {
  LH_RETURN_IF_ERROR(Annotate(
      data::SplitTokens(tokens.size(), spec.data.validation_fraction, spec.model.context).status(),
      path));
  const int32_t largest = tokens.MaxToken();
  if (largest < spec.model.vocab) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds token ", largest, ", but model.vocab is ", spec.model.vocab,
                   "; it must be at least ", static_cast<int64_t>(largest) + 1));
}

}  // namespace

absl::StatusOr<run::RunSpec> ReadRunFile(const std::string& path) {
  LH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kRunFileBytesMax));
  LH_ASSIGN_OR_RETURN(run::RunSpec spec, run::ParseRunFile(text, path));
  LH_RETURN_IF_ERROR(Annotate(model::BuildGraph(spec.model).status(), path));
  return spec;
}

absl::StatusOr<Submission> PrepareSubmission(const std::string& path) {
  Submission submission;
  LH_ASSIGN_OR_RETURN(submission.spec, ReadRunFile(path));
  run::DataSpec& data = submission.spec.data;
  submission.data_path =
      (std::filesystem::path(path).parent_path() / data.train).lexically_normal().string();
  LH_ASSIGN_OR_RETURN(const auto tokens,
                      data::TokenSource::Open(submission.data_path, FormatOf(data.tokenizer)));
  LH_RETURN_IF_ERROR(CheckTokens(*tokens, submission.data_path, submission.spec));
  LH_ASSIGN_OR_RETURN(submission.index, data::IndexFile(submission.data_path));
  data.id = submission.index.Id();
  data.tokens = tokens->size();
  return submission;
}

}  // namespace longhaul::cli
