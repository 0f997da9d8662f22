#include "compression/codec_bf16.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compression/little_endian.h"

namespace longhaul::compression {
namespace {

uint16_t RoundToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>(nan ? quiet : rounded);
}

class Bf16 final : public Codec {
 public:
  absl::string_view name() const override { return "bf16"; }
  uint16_t wire_id() const override { return 1; }
  bool lossless() const override { return false; }
  size_t EncodedSizeMax(size_t elements) const override { return elements * sizeof(uint16_t); }
  double ExpectedBytesPerElement() const override { return 2.0; }
  double ExpectedEncodeSecondsPerElement() const override { return 0.4e-9; }
  double ExpectedDecodeSecondsPerElement() const override { return 0.3e-9; }

  size_t Encode(absl::Span<const float> values, absl::Span<uint8_t> out) const override {
    const size_t bytes = EncodedSizeMax(values.size());
    LH_CHECK(out.size() >= bytes, out.size(), " bytes for ", values.size(), " values");
    for (size_t i = 0; i < values.size(); ++i) {
      StoreLittleEndian(RoundToBf16(values[i]), out.data() + i * sizeof(uint16_t));
    }
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> bytes, absl::Span<float> values) const override {
    if (bytes.size() != EncodedSizeMax(values.size())) {
      return absl::DataLossError(absl::StrCat("codec bf16: ", bytes.size(), " bytes for ",
                                              values.size(), " values, expected ",
                                              EncodedSizeMax(values.size())));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t upper = LoadLittleEndian<uint16_t>(bytes.data() + i * sizeof(uint16_t));
      values[i] = std::bit_cast<float>(upper << 16);
    }
    return absl::OkStatus();
  }
};

}  // namespace

const Codec& Bf16Codec() {
  static const Bf16* const codec = new Bf16;
  return *codec;
}

}  // namespace longhaul::compression
