#include "compute/backend/cuda/cuda_codec_kernels.h"
#include "compute/codec/groups.cuh"

namespace longhaul::compute {
namespace {

struct Widen {
  __device__ float operator()(BFloat16 value) const { return value; }
};
struct Round {
  __device__ BFloat16 operator()(float value) const { return BFloat16(value); }
};

}  // namespace

absl::Status CudaCodecKernels::EncodeNone(const DeviceSpan& values, uint8_t* bytes) const {
  if (values.element == Element::kFloat32) {
    return backend_.Copy(bytes, values.data, static_cast<size_t>(values.bytes()));
  }
  return cuda::MapInGroups(backend_, "encode none", values.As<BFloat16>().data(),
                           reinterpret_cast<float*>(bytes), values.elements, Widen{});
}

absl::Status CudaCodecKernels::DecodeNone(const uint8_t* bytes, const DeviceSpan& values,
                                          uint32_t*) const {
  if (values.element == Element::kFloat32) {
    return backend_.Copy(values.data, bytes, static_cast<size_t>(values.bytes()));
  }
  return cuda::MapInGroups(backend_, "decode none", reinterpret_cast<const float*>(bytes),
                           values.As<BFloat16>().data(), values.elements, Round{});
}

}  // namespace longhaul::compute
