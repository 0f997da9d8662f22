// Frames: one tensor on the wire, self-describing. docs/formats.md has the byte layout.
#ifndef LONGHAUL_COMPRESSION_FRAME_H_
#define LONGHAUL_COMPRESSION_FRAME_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"

namespace longhaul::compression {

enum class ElementType : uint8_t { kFloat32 = 1, kFloat64 = 2 };

struct FrameHeader {
  FrameKey key;
  uint64_t run_hash = 0;  // first 8 bytes of the SHA-256 of the run's name
  uint16_t codec = 0;     // Codec::wire_id
  ElementType element = ElementType::kFloat32;
  uint64_t elements = 0;  // before encoding
  uint64_t payload_bytes = 0;
};

inline constexpr size_t kFrameHeaderBytes = 96;

// Writes kFrameHeaderBytes bytes: magic, version, fields little-endian, XXH3-64 of the payload, and
// XXH3-64 of the header itself.
void WriteFrameHeader(const FrameHeader& header, absl::string_view payload, char* out);

// Parses and checks magic, version, header checksum and ranges (not the payload). DataLoss for
// corruption, InvalidArgument for an unknown version, codec or element type.
absl::StatusOr<FrameHeader> ParseFrameHeader(absl::string_view bytes);

// A whole frame: header as above, length equal to header + payload_bytes, payload checksum. The
// returned header's payload is bytes.substr(kFrameHeaderBytes).
absl::StatusOr<FrameHeader> ParseFrame(absl::string_view bytes);

uint64_t RunHash(absl::string_view run);

}  // namespace longhaul::compression

#endif  // LONGHAUL_COMPRESSION_FRAME_H_
