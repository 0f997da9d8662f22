#include "base/text_escape.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace longhaul {
namespace {

// `character` is one well-formed character. C1 is U+0080 to U+009F.
bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string EscapeControls(absl::string_view text, Newlines newlines) {
  std::string safe;
  while (!text.empty()) {
    const size_t size = Utf8CharacterBytes(text);
    const absl::string_view character = text.substr(0, std::max<size_t>(size, 1));
    text.remove_prefix(character.size());
    if (character == "\n") {
      absl::StrAppend(&safe, newlines == Newlines::kKept ? "\n" : "\\n");
    } else if (size == 0 || IsControl(character)) {
      for (const char c : character) {
        absl::StrAppendFormat(&safe, "\\x%02x", static_cast<unsigned char>(c));
      }
    } else {
      absl::StrAppend(&safe, character);
    }
  }
  return safe;
}

}  // namespace longhaul
