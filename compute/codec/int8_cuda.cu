#include <cfloat>

#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/cuda_codec_kernels.h"
#include "compute/codec/groups.cuh"

// A warp for each block of 256 values, which is 65 words of 4 bytes: the scale, then the quanta. A
// lane has 4 values, a word, in each half of the block. Every rounding is spelled out: the bytes
// must be those of compression/codec_int8.cc, which no fused multiply-add would give.
namespace longhaul::compute {
namespace {

constexpr int kBlockValues = 256;
constexpr int kWordValues = 4;
constexpr int kHalfWords = cuda::kWarp;
constexpr int kHalves = kBlockValues / kWordValues / kHalfWords;
constexpr int64_t kBlockBytes = kBlockValues + sizeof(float);
constexpr int kWarps = 8;
constexpr uint32_t kInfinityBits = 0x7f800000u, kNanBits = 0x7fc00000u;

using Quanta = cuda::Aligned<uint8_t, kWordValues>;

__device__ uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
__device__ float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Or {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};

// The scale of a block whose largest magnitude is finite; 0 where the block is flushed to zero.
__device__ float ScaleOf(float largest) {
  const float scale = __fdiv_rn(largest, 127.0f);
  if (scale < FLT_MIN) return 0.0f;
  // One unit in the last place less, where 127 quanta would be infinite.
  return BitsOf(__fmul_rn(scale, 127.0f)) >= kInfinityBits ? FloatOf(BitsOf(scale) - 1) : scale;
}

// The blocks of values that this thread's warp takes.
__device__ int64_t FirstBlock() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp; }
__device__ int64_t BlockStep() { return int64_t{gridDim.x} * kWarps; }

template <typename T>
__global__ void EncodeKernel(const T* values, int64_t n, uint8_t* bytes) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int64_t block = FirstBlock(); block * kBlockValues < n; block += BlockStep()) {
    const T* const from = values + block * kBlockValues;
    uint8_t* const to = bytes + block * kBlockBytes;
    const int64_t count = n - block * kBlockValues;
    cuda::Aligned<T, kWordValues> own[kHalves];
    uint32_t largest = 0;
    LONGHAUL_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int at = (half * kHalfWords + lane) * kWordValues;
      own[half] = cuda::LoadGroup<kWordValues>(from + at, count - at);
      LONGHAUL_UNROLL
      for (int k = 0; k < kWordValues; ++k) {
        const uint32_t magnitude = BitsOf(static_cast<float>(own[half].values[k])) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
      }
    }
    largest = cuda::WarpReduce(largest, cuda::Max());
    const float scale = largest < kInfinityBits ? ScaleOf(FloatOf(largest)) : FloatOf(kNanBits);
    if (lane == 0) *reinterpret_cast<uint32_t*>(to) = BitsOf(scale);
    LONGHAUL_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int at = (half * kHalfWords + lane) * kWordValues;
      Quanta quanta;
      LONGHAUL_UNROLL
      for (int k = 0; k < kWordValues; ++k) {
        const float value = static_cast<float>(own[half].values[k]);
        const int quantum = scale > 0 ? __float2int_rn(__fdiv_rn(value, scale)) : 0;
        quanta.values[k] = static_cast<uint8_t>(quantum);
      }
      cuda::StoreGroup(quanta, to + sizeof(float) + at, count - at);
    }
  }
}

__device__ bool ScaleIsKnown(float scale) {
  const uint32_t bits = BitsOf(scale);
  if (bits == 0 || bits == kNanBits) return true;
  return scale >= FLT_MIN && BitsOf(__fmul_rn(scale, 127.0f)) < kInfinityBits;
}

// What a block has: bits that lanes put together.
constexpr uint32_t kAnyQuantum = 1, kLowestQuantum = 2;

template <typename T>
__global__ void DecodeKernel(const uint8_t* bytes, int64_t n, T* values, uint32_t* damaged) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int64_t block = FirstBlock(); block * kBlockValues < n; block += BlockStep()) {
    const uint8_t* const from = bytes + block * kBlockBytes;
    const int64_t count = n - block * kBlockValues;
    const float scale = FloatOf(*reinterpret_cast<const uint32_t*>(from));
    Quanta quanta[kHalves];
    uint32_t found = 0;
    LONGHAUL_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int at = (half * kHalfWords + lane) * kWordValues;
      quanta[half] = cuda::LoadGroup<kWordValues>(from + sizeof(float) + at, count - at);
      LONGHAUL_UNROLL
      for (int k = 0; k < kWordValues; ++k) {
        if (quanta[half].values[k] != 0) found |= kAnyQuantum;
        if (quanta[half].values[k] == 0x80) found |= kLowestQuantum;
      }
    }
    found = cuda::WarpReduce(found, Or());
    const bool wrong = !ScaleIsKnown(scale) || (found & kLowestQuantum) != 0 ||
                       ((found & kAnyQuantum) != 0 && !(scale > 0));
    if (wrong && lane == 0) *damaged = 1;
    const bool no_number = wrong || !(scale >= 0);
    LONGHAUL_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      const int at = (half * kHalfWords + lane) * kWordValues;
      cuda::Aligned<T, kWordValues> group;
      LONGHAUL_UNROLL
      for (int k = 0; k < kWordValues; ++k) {
        const float quantum = static_cast<float>(static_cast<int8_t>(quanta[half].values[k]));
        const float value = no_number ? FloatOf(kNanBits) : __fmul_rn(quantum, scale);
        group.values[k] = static_cast<T>(value);
      }
      cuda::StoreGroup(group, values + block * kBlockValues + at, count - at);
    }
  }
}

cuda::LaunchShape ShapeOf(int64_t n) {
  const int64_t blocks = (n + kBlockValues - 1) / kBlockValues;
  const int64_t grid = std::min((blocks + kWarps - 1) / kWarps, cuda::kForEachBlocksMax);
  return {static_cast<unsigned>(grid), kWarps * cuda::kWarp};
}

template <typename T>
absl::Status Encode(CudaBackend& backend, absl::Span<const T> values, uint8_t* bytes) {
  const int64_t n = static_cast<int64_t>(values.size());
  return cuda::Launch(backend, "encode int8", ShapeOf(n), EncodeKernel<T>, values.data(), n, bytes);
}

template <typename T>
absl::Status Decode(CudaBackend& backend, const uint8_t* bytes, absl::Span<T> values,
                    uint32_t* damaged) {
  const int64_t n = static_cast<int64_t>(values.size());
  return cuda::Launch(backend, "decode int8", ShapeOf(n), DecodeKernel<T>, bytes, n, values.data(),
                      damaged);
}

}  // namespace

absl::Status CudaCodecKernels::EncodeInt8(const DeviceSpan& values, uint8_t* bytes) const {
  return values.element == Element::kFloat32
             ? Encode<float>(backend_, values.As<float>(), bytes)
             : Encode<BFloat16>(backend_, values.As<BFloat16>(), bytes);
}

absl::Status CudaCodecKernels::DecodeInt8(const uint8_t* bytes, const DeviceSpan& values,
                                          uint32_t* damaged) const {
  return values.element == Element::kFloat32
             ? Decode<float>(backend_, bytes, values.As<float>(), damaged)
             : Decode<BFloat16>(backend_, bytes, values.As<BFloat16>(), damaged);
}

}  // namespace longhaul::compute
