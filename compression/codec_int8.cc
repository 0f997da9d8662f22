#include "compression/codec_int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compression/little_endian.h"

namespace longhaul::compression {
namespace {

constexpr size_t kBlockValues = 256;
constexpr uint32_t kNanScaleBits = 0x7fc00000u;
constexpr uint32_t kInfinityBits = 0x7f800000u;

size_t EncodedSize(size_t elements) {
  return elements + (elements + kBlockValues - 1) / kBlockValues * sizeof(float);
}

// The bits of the largest magnitude; of an infinity or NaN where there is one, since those have the
// largest bits.
uint32_t LargestMagnitudeBits(absl::Span<const float> block) {
  uint32_t largest = 0;
  for (const float value : block) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  }
  return largest;
}

// The scale of a finite block; 0 where the block is flushed to zero.
float ScaleOf(float largest) {
  float scale = largest / 127.0f;
  if (scale < std::numeric_limits<float>::min()) return 0.0f;
  if (std::isinf(scale * 127.0f)) scale = std::nextafter(scale, 0.0f);
  return scale;
}

// Half to even, for magnitudes below 2^22: the sum has no bits left for a fraction.
float RoundHalfToEven(float value) {
  constexpr float kShift = 0x1.8p23f;
  return (value + kShift) - kShift;
}

void EncodeBlock(absl::Span<const float> block, uint8_t* out) {
  uint8_t* const quanta = out + sizeof(float);
  const uint32_t largest = LargestMagnitudeBits(block);
  if (largest >= kInfinityBits) {
    StoreLittleEndian(kNanScaleBits, out);
    std::memset(quanta, 0, block.size());
    return;
  }
  const float scale = ScaleOf(std::bit_cast<float>(largest));
  StoreLittleEndian(scale, out);
  if (scale == 0.0f) {
    std::memset(quanta, 0, block.size());
    return;
  }
  for (size_t i = 0; i < block.size(); ++i) {
    quanta[i] = static_cast<uint8_t>(static_cast<int32_t>(RoundHalfToEven(block[i] / scale)));
  }
}

bool ScaleIsKnown(float scale) {
  const uint32_t bits = std::bit_cast<uint32_t>(scale);
  if (bits == 0 || bits == kNanScaleBits) return true;
  return scale >= std::numeric_limits<float>::min() && std::isfinite(scale * 127.0f);
}

absl::Status DecodeBlock(const uint8_t* bytes, absl::Span<float> block) {
  const float scale = LoadLittleEndian<float>(bytes);
  const uint8_t* const quanta = bytes + sizeof(float);
  if (!ScaleIsKnown(scale)) {
    return absl::DataLossError(absl::StrCat("codec int8: scale ", scale, " is never written"));
  }
  uint8_t any = 0;
  bool lowest = false;
  for (size_t i = 0; i < block.size(); ++i) {
    any |= quanta[i];
    lowest |= quanta[i] == 0x80;
    block[i] = static_cast<float>(static_cast<int8_t>(quanta[i])) * scale;
  }
  if (lowest) return absl::DataLossError("codec int8: a quantum of -128 is never written");
  if (any != 0 && !(scale > 0.0f)) {
    return absl::DataLossError(
        absl::StrCat("codec int8: a block of scale ", scale, " has a quantum other than 0"));
  }
  return absl::OkStatus();
}

class Int8 final : public Codec {
 public:
  absl::string_view name() const override { return "int8"; }
  uint16_t wire_id() const override { return 2; }
  bool lossless() const override { return false; }
  size_t EncodedSizeMax(size_t elements) const override { return EncodedSize(elements); }
  double ExpectedBytesPerElement() const override { return 1.0 + 4.0 / kBlockValues; }
  double ExpectedEncodeSecondsPerElement() const override { return 0.8e-9; }
  double ExpectedDecodeSecondsPerElement() const override { return 0.8e-9; }

  size_t Encode(absl::Span<const float> values, absl::Span<uint8_t> out) const override {
    const size_t bytes = EncodedSize(values.size());
    LH_CHECK(out.size() >= bytes, out.size(), " bytes for ", values.size(), " values");
    uint8_t* to = out.data();
    for (size_t i = 0; i < values.size(); i += kBlockValues) {
      const absl::Span<const float> block = values.subspan(i, kBlockValues);
      EncodeBlock(block, to);
      to += sizeof(float) + block.size();
    }
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> bytes, absl::Span<float> values) const override {
    if (bytes.size() != EncodedSize(values.size())) {
      return absl::DataLossError(absl::StrCat("codec int8: ", bytes.size(), " bytes for ",
                                              values.size(), " values, expected ",
                                              EncodedSize(values.size())));
    }
    const uint8_t* from = bytes.data();
    for (size_t i = 0; i < values.size(); i += kBlockValues) {
      const absl::Span<float> block = values.subspan(i, kBlockValues);
      LH_RETURN_IF_ERROR(DecodeBlock(from, block));
      from += sizeof(float) + block.size();
    }
    return absl::OkStatus();
  }
};

}  // namespace

const Codec& Int8Codec() {
  static const Int8* const codec = new Int8;
  return *codec;
}

}  // namespace longhaul::compression
