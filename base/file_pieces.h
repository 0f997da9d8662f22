// Files that are written piece by piece, so that the whole need not be in memory.
#ifndef LONGHAUL_BASE_FILE_PIECES_H_
#define LONGHAUL_BASE_FILE_PIECES_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace longhaul {

// Takes the next bytes; they may change once it has returned.
using AppendPiece = absl::FunctionRef<absl::Status(absl::string_view piece)>;

// Gives the content of a file to `append`, piece by piece, and ends early with its error. May be
// called again and then gives the same.
using FilePieces = std::function<absl::Status(AppendPiece append)>;

// Who may use a new file, before the process's umask takes its part.
enum class FileAccess { kOwner, kEveryone };

// As WriteFileAtomically in base/file.h; an error of `pieces` leaves an old `path` untouched too.
absl::Status WritePiecesAtomically(const std::string& path, const FilePieces& pieces,
                                   FileAccess access = FileAccess::kOwner);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_FILE_PIECES_H_
