#include <array>

#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "compression/codec_bf16.h"
#include "compression/codec_int8.h"
#include "compression/codec_none.h"
#include "compression/codec_zstd.h"

namespace longhaul::compression {

absl::Span<const Codec* const> AllCodecs() {
  static const std::array<const Codec*, 4> table = {
      &NoneCodec(),
      &Bf16Codec(),
      &Int8Codec(),
      &ZstdCodec(),
  };
  return table;
}

absl::StatusOr<const Codec*> FindCodec(absl::string_view name) {
  std::string known;
  for (const Codec* codec : AllCodecs()) {
    if (codec->name() == name) return codec;
    absl::StrAppend(&known, known.empty() ? "" : ", ", codec->name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown codec \"", name, "\"; this build knows ", known));
}

absl::StatusOr<const Codec*> FindCodec(uint16_t wire_id) {
  std::string known;
  for (const Codec* codec : AllCodecs()) {
    if (codec->wire_id() == wire_id) return codec;
    absl::StrAppend(&known, known.empty() ? "" : ", ", codec->wire_id(), " (", codec->name(), ")");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown codec number ", wire_id, "; this build knows ", known));
}

}  // namespace longhaul::compression
