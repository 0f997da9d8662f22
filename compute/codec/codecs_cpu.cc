#include <algorithm>
#include <limits>

#include "compression/codec_bf16.h"
#include "compression/codec_int8.h"
#include "compression/codec_none.h"
#include "compute/backend/cpu/cpu_codec_kernels.h"

namespace longhaul::compute {
namespace {

absl::Status Encode(const compression::Codec& codec, const DeviceSpan& values, uint8_t* bytes) {
  const absl::Span<const float> floats = values.As<float>();
  codec.Encode(floats, absl::MakeSpan(bytes, codec.EncodedSizeMax(floats.size())));
  return absl::OkStatus();
}

absl::Status Decode(const compression::Codec& codec, const uint8_t* bytes, const DeviceSpan& values,
                    uint32_t* damaged) {
  const absl::Span<float> floats = values.As<float>();
  if (!codec.Decode({bytes, codec.EncodedSizeMax(floats.size())}, floats).ok()) {
    *damaged = 1;
    std::fill(floats.begin(), floats.end(), std::numeric_limits<float>::quiet_NaN());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CpuCodecKernels::EncodeNone(const DeviceSpan& values, uint8_t* bytes) const {
  return Encode(compression::NoneCodec(), values, bytes);
}
absl::Status CpuCodecKernels::DecodeNone(const uint8_t* bytes, const DeviceSpan& values,
                                         uint32_t* damaged) const {
  return Decode(compression::NoneCodec(), bytes, values, damaged);
}

absl::Status CpuCodecKernels::EncodeBf16(const DeviceSpan& values, uint8_t* bytes) const {
  return Encode(compression::Bf16Codec(), values, bytes);
}
absl::Status CpuCodecKernels::DecodeBf16(const uint8_t* bytes, const DeviceSpan& values,
                                         uint32_t* damaged) const {
  return Decode(compression::Bf16Codec(), bytes, values, damaged);
}

absl::Status CpuCodecKernels::EncodeInt8(const DeviceSpan& values, uint8_t* bytes) const {
  return Encode(compression::Int8Codec(), values, bytes);
}
absl::Status CpuCodecKernels::DecodeInt8(const uint8_t* bytes, const DeviceSpan& values,
                                         uint32_t* damaged) const {
  return Decode(compression::Int8Codec(), bytes, values, damaged);
}

}  // namespace longhaul::compute
