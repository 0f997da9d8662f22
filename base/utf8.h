// Well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates. JSON, YAML and
// Protobuf carry no other text.
#ifndef LONGHAUL_BASE_UTF8_H_
#define LONGHAUL_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace longhaul {

// Bytes of the well-formed character that `text`, which is not empty, begins with; 0 if there is
// none.
size_t Utf8CharacterBytes(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_UTF8_H_
