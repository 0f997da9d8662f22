// The codecs on the CPU: those of compression/.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_CPU_CODEC_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_CPU_CODEC_KERNELS_H_

#include "compute/backend/codec_kernels.h"

namespace longhaul::compute {

// Done when the call returns. Spans are of floats. What is damaged is no number as a whole.
class CpuCodecKernels final : public CodecKernels {
 public:
  absl::Status EncodeNone(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeNone(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;
  absl::Status EncodeBf16(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeBf16(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;
  absl::Status EncodeInt8(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeInt8(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_CPU_CODEC_KERNELS_H_
