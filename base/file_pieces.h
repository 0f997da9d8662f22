// Files that are read and written piece by piece, so that the whole need not be in memory.
#ifndef LONGHAUL_BASE_FILE_PIECES_H_
#define LONGHAUL_BASE_FILE_PIECES_H_

#include <cstddef>
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

// Gives the file, as long as it is when it is opened, to `take` in pieces of `piece_bytes`, the
// last may be shorter; ends early with the error of `take`. Otherwise as ReadFile in base/file.h;
// OutOfRange if the file becomes shorter meanwhile.
absl::Status ReadFilePieces(const std::string& path, size_t piece_bytes, AppendPiece take);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_FILE_PIECES_H_
