#include "cli/submit.h"

#include <filesystem>

#include "base/file.h"
#include "base/status_macros.h"
#include "data/run_data.h"
#include "model/family.h"

namespace longhaul::cli {
namespace {

constexpr uint64_t kRunFileBytesMax = 1 << 20;

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
  submission.data_path =
      (std::filesystem::path(path).parent_path() / spec.train).lexically_normal().string();
  LH_ASSIGN_OR_RETURN(const auto tokens, data::OpenTokens(submission.data_path, spec));
  LH_RETURN_IF_ERROR(Annotate(data::CheckTokens(*tokens, submission.spec), submission.data_path));
  LH_ASSIGN_OR_RETURN(submission.index, data::IndexFile(submission.data_path));
  spec.id = submission.index.Id();
  spec.tokens = tokens->size();
  return submission;
}

}  // namespace longhaul::cli
