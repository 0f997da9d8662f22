#include "checkpoint/float_formats.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace longhaul::checkpoint {
namespace {

uint32_t Half(absl::string_view bytes, size_t index) {
  return static_cast<uint32_t>(static_cast<uint8_t>(bytes[2 * index])) |
         static_cast<uint32_t>(static_cast<uint8_t>(bytes[2 * index + 1])) << 8;
}

float FromBf16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
float FromF16(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {  // zero and subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1F ? 0xFFu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

}  // namespace

bool IsFloatFormat(absl::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

void DecodeFloats(absl::string_view dtype, absl::string_view bytes, absl::Span<float> values) {
  LH_CHECK(IsFloatFormat(dtype) && bytes.size() == values.size() * (dtype == "F32" ? 4 : 2));
  if (dtype == "F32") {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  const bool brain = dtype == "BF16";
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = brain ? FromBf16(Half(bytes, i)) : FromF16(Half(bytes, i));
  }
}

}  // namespace longhaul::checkpoint
