#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/file_pieces.h"
#include "base/status_macros.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/hugging_face_layout.h"

namespace longhaul::checkpoint {
namespace {

namespace fs = std::filesystem;

// A folder to write, once it was looked at.
struct Target {
  fs::path path;
  fs::path parent;
  bool exists = false;
};

// The same words, as the fault of whoever chose the folder; a full disk stays what it is.
absl::Status BadTarget(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return status;
  return absl::InvalidArgumentError(status.message());
}

absl::StatusOr<Target> LookAt(const std::string& directory, bool overwrite) {
  if (directory.empty()) return absl::InvalidArgumentError("the folder to write has no name");
  Target target;
  target.path = fs::path(directory).lexically_normal();
  if (!target.path.has_filename()) target.path = target.path.parent_path();  // "model/"
  target.parent = target.path.has_parent_path() ? target.path.parent_path() : ".";
  struct stat found;
  if (::stat(target.path.c_str(), &found) == 0) {
    if (!S_ISDIR(found.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(directory, " is not a folder"));
    }
    target.exists = true;
  } else if (errno != ENOENT) {
    return BadTarget(ErrnoStatus(errno, "write to", directory));
  } else if (::stat(target.parent.c_str(), &found) != 0) {
    return BadTarget(ErrnoStatus(errno, "write to", target.parent.string()));
  }
  if (!target.exists || overwrite) return target;
  std::error_code error;
  const bool empty = fs::is_empty(target.path, error);
  if (error) return BadTarget(ErrnoStatus(error.value(), "read", directory));
  if (empty) return target;
  return absl::AlreadyExistsError(
      absl::StrCat(directory, " is not empty; choose another folder, or give --overwrite"));
}

// A new folder on the same file system: inside the target, or beside it while there is none. It is
// as open as any that the user makes, since it may become the target.
absl::StatusOr<std::string> MakeTemporary(const Target& target) {
  constexpr int kTriesMax = 1000;
  const fs::path folder = target.exists ? target.path : target.parent;
  for (int serial = 0; serial < kTriesMax; ++serial) {
    const std::string path =
        (folder / absl::StrCat(".longhaul-export-", ::getpid(), "-", serial)).string();
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) break;  // by a dead process, or another call
  }
  return BadTarget(ErrnoStatus(errno, "write to", target.path.string()));
}

using Content = std::pair<std::string, FilePieces>;  // name and bytes

// `bytes` must outlive it.
FilePieces OnePiece(const std::string& bytes) {
  return [&bytes](AppendPiece append) { return append(bytes); };
}

// What says what the model is comes last.
std::vector<Content> ContentsOf(const HuggingFaceFiles& files) {
  std::vector<Content> contents = {{kWeightsFile, files.model_safetensors}};
  for (const PassedFile& file : files.passed) {
    LH_CHECK(IsPassedFile(file.name), file.name);
    contents.emplace_back(file.name, OnePiece(file.bytes));
  }
  const bool is_graph = !files.graph_json.empty();
  contents.emplace_back(is_graph ? kGraphFile : kConfigFile,
                        OnePiece(is_graph ? files.graph_json : files.config_json));
  return contents;
}

}  // namespace

absl::Status CheckExportTarget(const std::string& directory, bool overwrite) {
  LH_ASSIGN_OR_RETURN(const Target target, LookAt(directory, overwrite));
  LH_ASSIGN_OR_RETURN(const std::string temporary, MakeTemporary(target));
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return absl::OkStatus();
}

absl::Status WriteHuggingFace(const HuggingFaceFiles& files, const std::string& directory,
                              bool overwrite) {
  LH_ASSIGN_OR_RETURN(const Target target, LookAt(directory, overwrite));
  LH_ASSIGN_OR_RETURN(const std::string temporary, MakeTemporary(target));
  absl::Cleanup remove = [&temporary] {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  };
  const std::vector<Content> contents = ContentsOf(files);
  for (const auto& [name, pieces] : contents) {
    LH_RETURN_IF_ERROR(WritePiecesAtomically((fs::path(temporary) / name).string(), pieces,
                                             FileAccess::kEveryone));
  }
  if (!target.exists) {
    LH_RETURN_IF_ERROR(RenameFile(temporary, target.path.string()));
    return SyncDirectory(target.parent.string());
  }
  for (const auto& [name, pieces] : contents) {
    LH_RETURN_IF_ERROR(
        RenameFile((fs::path(temporary) / name).string(), (target.path / name).string()));
  }
  const char* const contradicting = files.graph_json.empty() ? kGraphFile : kConfigFile;
  std::error_code error;
  fs::remove(target.path / contradicting, error);
  if (error) return ErrnoStatus(error.value(), "remove", (target.path / contradicting).string());
  return SyncDirectory(target.path.string());
}

}  // namespace longhaul::checkpoint
