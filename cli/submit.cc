#include "cli/submit.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "data/run_data.h"
#include "model/family.h"

namespace longhaul::cli {
namespace {

constexpr uint64_t kRunFileBytesMax = 1 << 20;

// The weights and the tokenizer's files of model.from.
absl::Status ReadFrom(const std::string& run_file, Submission& submission) {
  run::RunSpec& spec = submission.spec;
  const std::string directory =
      (std::filesystem::path(run_file).parent_path() / spec.from).lexically_normal().string();
  LH_ASSIGN_OR_RETURN(submission.weights,
                      checkpoint::ImportHuggingFace(directory, spec.model.context));
  submission.weights->spec.dropout = spec.model.dropout;
  if (submission.weights->spec != spec.model) {
    return absl::AbortedError(absl::StrCat(directory, " was changed meanwhile; try again"));
  }
  LH_ASSIGN_OR_RETURN(const auto names, checkpoint::FindPassedFiles(directory));
  for (const std::string& name : names) {
    Submission::Upload& file = submission.uploads.emplace_back();
    file.path = absl::StrCat(directory, "/", name);
    LH_ASSIGN_OR_RETURN(file.index, data::IndexFile(file.path));
    spec.tokenizer_files.push_back(absl::StrCat(name, " ", file.index.Id()));
  }
  return absl::OkStatus();
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
  run::DataSpec& spec = submission.spec.data;
  const std::string train =
      (std::filesystem::path(path).parent_path() / spec.train).lexically_normal().string();
  LH_ASSIGN_OR_RETURN(const data::DataFiles files, data::FindDataFiles(train, spec));
  LH_RETURN_IF_ERROR(data::DatasetBytes(files.tokens).status());
  LH_ASSIGN_OR_RETURN(const data::RunTokens tokens, data::OpenTokens(files, spec));
  LH_RETURN_IF_ERROR(Annotate(data::CheckTokens(tokens, submission.spec), files.tokens));
  for (const std::string& file : {files.tokens, files.index}) {
    if (file.empty()) continue;
    LH_ASSIGN_OR_RETURN(data::DatasetIndex index, data::IndexFile(file));
    submission.uploads.push_back({file, std::move(index)});
  }
  spec.id = submission.uploads[0].index.Id();
  if (submission.uploads.size() > 1) spec.index_id = submission.uploads[1].index.Id();
  spec.tokens = tokens.source->size();
  if (!submission.spec.from.empty()) LH_RETURN_IF_ERROR(ReadFrom(path, submission));
  return submission;
}

}  // namespace longhaul::cli
