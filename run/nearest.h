// Spelling help for messages.
#ifndef LONGHAUL_RUN_NEAREST_H_
#define LONGHAUL_RUN_NEAREST_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul::run {

// Single-character edits (insert, delete, replace, swap two neighbours) that turn one word into the
// other, no character edited twice: the optimal string alignment distance.
size_t EditDistance(absl::string_view from, absl::string_view to);

// The element of `known`, which must not be empty, nearest to `word`; the first among equals.
const std::string& Nearest(absl::string_view word, absl::Span<const std::string> known);

// Whether `word` may be a misspelling of `known`: at most about a third of it is edited.
bool IsNear(absl::string_view word, absl::string_view known);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_NEAREST_H_
