// How the tokens of a file are stored.
#ifndef LONGHAUL_DATA_TOKEN_FORMAT_H_
#define LONGHAUL_DATA_TOKEN_FORMAT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace longhaul::data {

// One little-endian number a token. kUint8 also reads text: one byte is one token.
enum class TokenFormat { kUint8, kInt8, kUint16, kInt16, kUint32, kInt32, kInt64 };

size_t TokenBytes(TokenFormat format);
// "uint16"
absl::string_view TokenFormatName(TokenFormat format);

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_TOKEN_FORMAT_H_
