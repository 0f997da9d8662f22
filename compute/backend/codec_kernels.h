// The kernels of the codecs on one kind of device.
#ifndef LONGHAUL_COMPUTE_BACKEND_CODEC_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CODEC_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compute/backend/element.h"

namespace longhaul::compute {

// What DeviceCodec calls once it has checked its arguments. All memory is the device's. Encoders
// write exactly what the codec of their name in compression/ writes for the values as floats;
// decoders write its values, rounded to the span's element type. A decoder that finds what no
// encoder writes sets *damaged to 1 and leaves no number in place of at least the values concerned.
// Belongs to a backend and runs on it.
class CodecKernels {
 public:
  virtual ~CodecKernels() = default;

  virtual absl::Status EncodeNone(const DeviceSpan& values, uint8_t* bytes) const = 0;
  virtual absl::Status DecodeNone(const uint8_t* bytes, const DeviceSpan& values,
                                  uint32_t* damaged) const = 0;

  virtual absl::Status EncodeBf16(const DeviceSpan& values, uint8_t* bytes) const = 0;
  virtual absl::Status DecodeBf16(const uint8_t* bytes, const DeviceSpan& values,
                                  uint32_t* damaged) const = 0;

  virtual absl::Status EncodeInt8(const DeviceSpan& values, uint8_t* bytes) const = 0;
  virtual absl::Status DecodeInt8(const uint8_t* bytes, const DeviceSpan& values,
                                  uint32_t* damaged) const = 0;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CODEC_KERNELS_H_
