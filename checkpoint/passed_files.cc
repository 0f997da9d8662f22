#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "checkpoint/hugging_face.h"

namespace longhaul::checkpoint {
namespace {

constexpr std::array<absl::string_view, 12> kPassedFiles = {
    "added_tokens.json", "chat_template.jinja",     "chat_template.json", "generation_config.json",
    "merges.txt",        "special_tokens_map.json", "spiece.model",       "tokenizer.json",
    "tokenizer.model",   "tokenizer_config.json",   "vocab.json",         "vocab.txt"};

}  // namespace

bool IsPassedFile(absl::string_view name) {
  return std::find(kPassedFiles.begin(), kPassedFiles.end(), name) != kPassedFiles.end();
}

absl::StatusOr<std::vector<std::string>> FindPassedFiles(const std::string& directory) {
  std::vector<std::string> names;
  for (const absl::string_view name : kPassedFiles) {
    const std::string path = absl::StrCat(directory, "/", name);
    const absl::StatusOr<uint64_t> bytes = FileSize(path);
    if (absl::IsNotFound(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    if (*bytes > kPassedFileBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has ", *bytes,
                                                     " bytes, more than the ", kPassedFileBytesMax,
                                                     " that a tokenizer's file may have"));
    }
    if (*bytes > 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace longhaul::checkpoint
