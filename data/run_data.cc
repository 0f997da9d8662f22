#include "data/run_data.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/batches.h"
#include "data/llmc_header.h"
#include "data/mapping.h"
#include "data/megatron_index.h"

namespace longhaul::data {
namespace {

using run::DocumentMode;
using run::Tokenizer;

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

DataFiles MegatronPair(const std::string& path) {
  absl::string_view prefix = path;
  if (!absl::ConsumeSuffix(&prefix, ".idx")) absl::ConsumeSuffix(&prefix, ".bin");
  return {absl::StrCat(prefix, ".bin"), absl::StrCat(prefix, ".idx")};
}

// By what the file begins with; bytes if that says nothing.
absl::StatusOr<Tokenizer> TokenizerByContent(const std::string& path) {
  LH_ASSIGN_OR_RETURN(const Mapping mapping, Mapping::Open(path));
  const auto headed = LlmcFormat(mapping.bytes());
  if (!headed.has_value()) return Tokenizer::kBytes;
  return *headed == TokenFormat::kUint16 ? Tokenizer::kUint16 : Tokenizer::kUint32;
}

absl::StatusOr<std::unique_ptr<TokenSource>> OpenOneFile(const std::string& path,
                                                         Tokenizer tokenizer) {
  if (tokenizer == Tokenizer::kAuto) {
    LH_ASSIGN_OR_RETURN(tokenizer, TokenizerByContent(path));
  }
  switch (tokenizer) {
    case Tokenizer::kUint16:
      return TokenSource::Open(path, TokenFormat::kUint16, TokenHeader::kLlmc);
    case Tokenizer::kUint32:
      return TokenSource::Open(path, TokenFormat::kUint32, TokenHeader::kLlmc);
    case Tokenizer::kBytes:
      return TokenSource::Open(path, TokenFormat::kUint8, TokenHeader::kNone);
    case Tokenizer::kAuto:
    case Tokenizer::kMegatron:
      break;
  }
  LH_CHECK(false, "tokenizer ", static_cast<int>(tokenizer));
  return nullptr;
}

absl::StatusOr<Documents> FindDocuments(const std::string& path, const TokenSource& source,
                                        const run::DataSpec& spec) {
  if (spec.documents == DocumentMode::kPacked) return Documents();
  if (spec.end_of_document == run::kNoEndOfDocument) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " does not say where its documents end: set data.end_of_document to the token that ",
        "ends them, or data.documents: packed"));
  }
  std::vector<int64_t> starts =
      FindDocumentStarts(source, static_cast<int32_t>(spec.end_of_document));
  if (starts.size() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has no token ", spec.end_of_document,
                     " (data.end_of_document) before its last one, so it is one document"));
  }
  return Documents(spec.documents, std::move(starts));
}

absl::StatusOr<RunTokens> OpenMegatron(const DataFiles& files, const run::DataSpec& spec) {
  LH_ASSIGN_OR_RETURN(const MegatronIndex index, MegatronIndex::Open(files.index));
  RunTokens tokens;
  LH_ASSIGN_OR_RETURN(tokens.source,
                      TokenSource::Open(files.tokens, index.format(), TokenHeader::kNone));
  if (tokens.source->size() != index.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.tokens, " has ", tokens.source->size(), " tokens, its index ", files.index, " has ",
        index.tokens(), "; one of them may be truncated, or they do not belong together"));
  }
  if (spec.documents == DocumentMode::kPacked) return tokens;
  if (spec.end_of_document == run::kNoEndOfDocument) {
    tokens.documents = Documents(spec.documents, index.DocumentStarts());
    return tokens;
  }
  LH_ASSIGN_OR_RETURN(tokens.documents, FindDocuments(files.tokens, *tokens.source, spec));
  return tokens;
}

// A part of the data in which every token but the first of each document is a target.
absl::Status CheckTargets(const Documents& documents, int64_t begin, int64_t end,
                          absl::string_view part) {
  const int64_t starts = static_cast<int64_t>(documents.StartsIn(begin, end).size());
  if (end == begin || starts < end - begin) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("every document of the ", part, " part has one token only, so that none is a ",
                   "target; set data.documents: packed, or another data.end_of_document"));
}

}  // namespace

absl::StatusOr<DataFiles> FindDataFiles(const std::string& path, run::DataSpec& spec) {
  const DataFiles pair = MegatronPair(path);
  if (spec.tokenizer == Tokenizer::kMegatron) return pair;
  if (spec.tokenizer != Tokenizer::kAuto) return DataFiles{path, ""};
  const bool one_of_pair = path == pair.tokens || path == pair.index || !IsFile(path);
  if (one_of_pair && IsFile(pair.tokens) && LooksLikeMegatronIndex(pair.index)) {
    spec.tokenizer = Tokenizer::kMegatron;
    return pair;
  }
  LH_ASSIGN_OR_RETURN(spec.tokenizer, TokenizerByContent(path));
  if (spec.tokenizer == Tokenizer::kBytes && absl::EndsWith(path, ".bin")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has neither llm.c's header nor Megatron's index ", pair.index, " beside it: set ",
        "data.tokenizer: uint16 or uint32 for plain tokens, or bytes"));
  }
  return DataFiles{path, ""};
}

DataFiles StoredFiles(const DatasetStore& store, const run::DataSpec& spec) {
  return {store.DataPath(spec.id), spec.index_id.empty() ? "" : store.DataPath(spec.index_id)};
}

absl::StatusOr<RunTokens> OpenTokens(const DataFiles& files, const run::DataSpec& spec) {
  LH_CHECK((spec.tokenizer == Tokenizer::kMegatron) == !files.index.empty(), files.index);
  if (spec.tokenizer == Tokenizer::kMegatron) return OpenMegatron(files, spec);
  RunTokens tokens;
  LH_ASSIGN_OR_RETURN(tokens.source, OpenOneFile(files.tokens, spec.tokenizer));
  LH_ASSIGN_OR_RETURN(tokens.documents, FindDocuments(files.tokens, *tokens.source, spec));
  return tokens;
}

absl::Status CheckTokens(const RunTokens& tokens, const run::RunSpec& spec) {
  const int64_t size = tokens.source->size();
  LH_ASSIGN_OR_RETURN(const Split split,
                      SplitTokens(size, spec.data.validation_fraction, spec.model.context));
  LH_RETURN_IF_ERROR(CheckTargets(tokens.documents, 1, split.train_tokens, "training"));
  LH_RETURN_IF_ERROR(CheckTargets(tokens.documents, split.train_tokens, size, "validation"));
  const int64_t largest = tokens.source->MaxToken();
  if (largest < spec.model.vocab) return absl::OkStatus();
  if (largest == std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data holds a token that is negative or not below ", largest,
                     "; it may be damaged, or data.tokenizer is not that of the file"));
  }
  return absl::InvalidArgumentError(absl::StrCat("the data holds token ", largest,
                                                 ", but model.vocab is ", spec.model.vocab,
                                                 "; set model.vocab to at least ", largest + 1));
}

}  // namespace longhaul::data
