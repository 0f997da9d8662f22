#include "compute/backend/cuda/cuda_codec_kernels.h"
#include "compute/codec/groups.cuh"

namespace longhaul::compute {
namespace {

// As the codec has it, BFloat16 rounds to the nearest, ties to even, and makes NaNs quiet.
template <typename T>
struct Encode {
  __device__ BFloat16 operator()(T value) const { return BFloat16(static_cast<float>(value)); }
};
template <typename T>
struct Decode {
  __device__ T operator()(BFloat16 value) const {
    return static_cast<T>(static_cast<float>(value));
  }
};

}  // namespace

absl::Status CudaCodecKernels::EncodeBf16(const DeviceSpan& values, uint8_t* bytes) const {
  BFloat16* const to = reinterpret_cast<BFloat16*>(bytes);
  constexpr char kName[] = "encode bf16";
  return values.element == Element::kFloat32
             ? cuda::MapInGroups(backend_, kName, values.As<float>().data(), to, values.elements,
                                 Encode<float>{})
             : cuda::MapInGroups(backend_, kName, values.As<BFloat16>().data(), to, values.elements,
                                 Encode<BFloat16>{});
}

absl::Status CudaCodecKernels::DecodeBf16(const uint8_t* bytes, const DeviceSpan& values,
                                          uint32_t*) const {
  const BFloat16* const from = reinterpret_cast<const BFloat16*>(bytes);
  constexpr char kName[] = "decode bf16";
  return values.element == Element::kFloat32
             ? cuda::MapInGroups(backend_, kName, from, values.As<float>().data(), values.elements,
                                 Decode<float>{})
             : cuda::MapInGroups(backend_, kName, from, values.As<BFloat16>().data(),
                                 values.elements, Decode<BFloat16>{});
}

}  // namespace longhaul::compute
