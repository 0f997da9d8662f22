// A codec turns one fp32 tensor into bytes and back.
#ifndef LONGHAUL_COMPRESSION_CODEC_H_
#define LONGHAUL_COMPRESSION_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul::compression {

// No tensor is larger, so that sizes computed from element counts cannot overflow.
inline constexpr uint64_t kElementsMax = uint64_t{1} << 40;

// Stateless and thread-safe; obtained from the table below and never destroyed.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual absl::string_view name() const = 0;
  virtual uint16_t wire_id() const = 0;  // in frames; never reused
  virtual bool lossless() const = 0;     // decode(encode(x)) has the bits of x, NaN payloads too

  // Upper bound of Encode's result for `elements` values, of which there are at most kElementsMax.
  virtual size_t EncodedSizeMax(size_t elements) const = 0;
  // What the planner assumes: size, and speed on one core of about 3 GHz.
  virtual double ExpectedBytesPerElement() const = 0;
  virtual double ExpectedEncodeSecondsPerElement() const = 0;
  virtual double ExpectedDecodeSecondsPerElement() const = 0;

  // Writes at most EncodedSizeMax(values.size()) bytes to `out`, which must have that many, and
  // returns how many. Never fails; zero elements are allowed.
  virtual size_t Encode(absl::Span<const float> values, absl::Span<uint8_t> out) const = 0;

  // Fills `values` exactly, or returns DataLoss (truncated, too long, corrupt) and leaves `values`
  // unspecified. Never reads or writes outside the spans, whatever the bytes.
  virtual absl::Status Decode(absl::Span<const uint8_t> bytes, absl::Span<float> values) const = 0;
};

// The table: every codec of this build, in one explicit list.
absl::Span<const Codec* const> AllCodecs();
// InvalidArgument lists the known names.
absl::StatusOr<const Codec*> FindCodec(absl::string_view name);
absl::StatusOr<const Codec*> FindCodec(uint16_t wire_id);

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_CODEC_H_
