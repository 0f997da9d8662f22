// First byte: which codec; second and third: how many values; the rest is decoded. What decodes
// without loss must encode and decode to itself.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "compression/codec.h"
#include "compression/little_endian.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul::compression;  // NOLINT: the entry point must be global
  if (size < 3) return 0;
  const Codec& codec = *AllCodecs()[data[0] % AllCodecs().size()];
  std::vector<float> values(LoadLittleEndian<uint16_t>(data + 1));
  if (!codec.Decode({data + 3, size - 3}, absl::MakeSpan(values)).ok()) return 0;
  std::vector<uint8_t> encoded(codec.EncodedSizeMax(values.size()));
  encoded.resize(codec.Encode(values, absl::MakeSpan(encoded)));
  std::vector<float> again(values.size());
  LH_CHECK(codec.Decode(encoded, absl::MakeSpan(again)).ok(), codec.name());
  if (codec.lossless() && !values.empty()) {
    LH_CHECK(std::memcmp(values.data(), again.data(), values.size() * sizeof(float)) == 0,
             codec.name());
  }
  return 0;
}
