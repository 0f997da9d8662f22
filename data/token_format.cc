#include "data/token_format.h"

#include "base/check.h"

namespace longhaul::data {
namespace {

struct FormatRow {
  TokenFormat format;
  size_t bytes;
  const char* name;
};

constexpr FormatRow kFormats[] = {
    {TokenFormat::kUint8, 1, "uint8"},   {TokenFormat::kInt8, 1, "int8"},
    {TokenFormat::kUint16, 2, "uint16"}, {TokenFormat::kInt16, 2, "int16"},
    {TokenFormat::kUint32, 4, "uint32"}, {TokenFormat::kInt32, 4, "int32"},
    {TokenFormat::kInt64, 8, "int64"},
};

const FormatRow& Row(TokenFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return row;
  }
  LH_CHECK(false, "token format ", static_cast<int>(format));
  return kFormats[0];
}

}  // namespace

size_t TokenBytes(TokenFormat format) { return Row(format).bytes; }

absl::string_view TokenFormatName(TokenFormat format) { return Row(format).name; }

}  // namespace longhaul::data
