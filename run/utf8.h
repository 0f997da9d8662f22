// Whether text is what JSON and YAML can carry.
#ifndef LONGHAUL_RUN_UTF8_H_
#define LONGHAUL_RUN_UTF8_H_

#include "absl/strings/string_view.h"

namespace longhaul::run {

// Well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates.
bool IsUtf8(absl::string_view text);

}  // namespace longhaul::run

#endif  // LONGHAUL_RUN_UTF8_H_
