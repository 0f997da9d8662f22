// The types of elements that devices compute with.
#ifndef LONGHAUL_COMPUTE_BACKEND_ELEMENT_H_
#define LONGHAUL_COMPUTE_BACKEND_ELEMENT_H_

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "base/check.h"

// Functions that kernels call too.
#ifdef __CUDACC__
#define LONGHAUL_HOST_DEVICE __host__ __device__
#else
#define LONGHAUL_HOST_DEVICE
#endif

namespace longhaul::compute {

// The upper half of a float. Computed with as float.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // Rounds to the nearest, ties to even; what is no number stays none.
  LONGHAUL_HOST_DEVICE explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    const bool is_number = (word & 0x7fffffffu) <= 0x7f800000u;
    bits = static_cast<uint16_t>(is_number ? (word + 0x7fffu + ((word >> 16) & 1u)) >> 16
                                           : (word >> 16) | 0x40u);
  }
  LONGHAUL_HOST_DEVICE operator float() const {  // NOLINT: loses nothing
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

// What sums over elements of type T are kept in: a float for a BFloat16. So are statistics,
// accumulators of gradients, and the weights that the optimizer holds.
template <typename T>
struct WideOf {
  using Type = T;
};
template <>
struct WideOf<BFloat16> {
  using Type = float;
};
template <typename T>
using Wide = typename WideOf<T>::Type;

enum class Element { kFloat32, kFloat64, kBFloat16 };

template <typename T>
inline constexpr Element kElementOf = Element::kFloat32;
template <>
inline constexpr Element kElementOf<double> = Element::kFloat64;
template <>
inline constexpr Element kElementOf<BFloat16> = Element::kBFloat16;

constexpr int64_t BytesOf(Element element) {
  switch (element) {
    case Element::kFloat32:
      return 4;
    case Element::kFloat64:
      return 8;
    case Element::kBFloat16:
      return 2;
  }
  return 0;
}

// Device memory of a tensor whose element type is known at run time only.
struct DeviceSpan {
  void* data = nullptr;
  int64_t elements = 0;
  Element element = Element::kFloat32;

  DeviceSpan() = default;
  template <typename T>
  explicit DeviceSpan(absl::Span<T> values)
      : data(values.data()),
        elements(static_cast<int64_t>(values.size())),
        element(kElementOf<T>) {}

  int64_t bytes() const { return elements * BytesOf(element); }
  // T must be the element's type.
  template <typename T>
  absl::Span<T> As() const {
    LH_CHECK(element == kElementOf<T>, "the elements are of another type");
    return absl::MakeSpan(static_cast<T*>(data), static_cast<size_t>(elements));
  }
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_BACKEND_ELEMENT_H_
