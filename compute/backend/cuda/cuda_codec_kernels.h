// The codecs on CUDA devices: the methods are in compute/codec/NAME_cuda.cu.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_CODEC_KERNELS_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_CODEC_KERNELS_H_

#include "compute/backend/codec_kernels.h"

namespace longhaul::compute {

class CudaBackend;

// Queues kernels on the stream of `backend`, which must outlive it.
class CudaCodecKernels final : public CodecKernels {
 public:
  explicit CudaCodecKernels(CudaBackend& backend) : backend_(backend) {}

  absl::Status EncodeNone(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeNone(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;
  absl::Status EncodeBf16(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeBf16(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;
  absl::Status EncodeInt8(const DeviceSpan& values, uint8_t* bytes) const override;
  absl::Status DecodeInt8(const uint8_t* bytes, const DeviceSpan& values,
                          uint32_t* damaged) const override;

 private:
  CudaBackend& backend_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_CUDA_CODEC_KERNELS_H_
