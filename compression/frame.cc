#include "compression/frame.h"

#include <xxhash.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "compression/codec.h"
#include "compression/little_endian.h"

namespace longhaul::compression {
namespace {

constexpr absl::string_view kMagic = "LHFR";
constexpr uint16_t kVersion = 1;

// Where each field lies; docs/formats.md has the table.
enum Offset : size_t {
  kVersionAt = 4,
  kKindAt = 6,
  kTermAt = 8,
  kNumberAt = 12,
  kPipelineAt = 16,
  kMicroBatchAt = 20,
  kStepAt = 24,
  kStageAt = 32,
  kIndexAt = 36,
  kRunHashAt = 40,
  kCodecAt = 48,
  kElementAt = 50,
  kFirstZeroAt = 51,
  kElementsAt = 56,
  kPayloadBytesAt = 64,
  kSecondZeroAt = 72,
  kPayloadChecksumAt = 80,
  kHeaderChecksumAt = 88,
};
static_assert(kHeaderChecksumAt + sizeof(uint64_t) == kFrameHeaderBytes);

uint64_t Checksum(absl::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

FrameHeader LoadFields(const char* in) {
  FrameHeader header;
  FrameKey& key = header.key;
  key.kind = static_cast<FrameKind>(LoadLittleEndian<uint16_t>(in + kKindAt));
  key.epoch.term = LoadLittleEndian<uint32_t>(in + kTermAt);
  key.epoch.number = LoadLittleEndian<uint32_t>(in + kNumberAt);
  key.pipeline = LoadLittleEndian<uint32_t>(in + kPipelineAt);
  key.micro_batch = LoadLittleEndian<uint32_t>(in + kMicroBatchAt);
  key.step = LoadLittleEndian<uint64_t>(in + kStepAt);
  key.stage = LoadLittleEndian<uint32_t>(in + kStageAt);
  key.index = LoadLittleEndian<uint32_t>(in + kIndexAt);
  header.run_hash = LoadLittleEndian<uint64_t>(in + kRunHashAt);
  header.codec = LoadLittleEndian<uint16_t>(in + kCodecAt);
  header.element = static_cast<ElementType>(LoadLittleEndian<uint8_t>(in + kElementAt));
  header.elements = LoadLittleEndian<uint64_t>(in + kElementsAt);
  header.payload_bytes = LoadLittleEndian<uint64_t>(in + kPayloadBytesAt);
  return header;
}

bool ReservedAreZero(const char* in) {
  for (size_t i = kFirstZeroAt; i < kElementsAt; ++i) {
    if (in[i] != 0) return false;
  }
  return LoadLittleEndian<uint64_t>(in + kSecondZeroAt) == 0;
}

// That the payload's size is one that this codec and element type can have.
absl::Status CheckSizes(const FrameHeader& header) {
  if (header.elements > kElementsMax) {
    return absl::DataLossError(absl::StrCat("frame of ", ToString(header.key), ": ",
                                            header.elements, " elements, at most ", kElementsMax,
                                            " are possible"));
  }
  LH_ASSIGN_OR_RETURN(const Codec* codec, FindCodec(header.codec));
  uint64_t largest = 0;
  bool exact = true;
  switch (header.element) {
    case ElementType::kFloat32:
      largest = codec->EncodedSizeMax(header.elements);
      exact = false;
      break;
    case ElementType::kFloat64:
      largest = header.elements * sizeof(double);
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat("frame of ", ToString(header.key),
                                                     ": unknown element type ",
                                                     static_cast<int>(header.element)));
  }
  if (exact && header.codec != 0) {
    return absl::InvalidArgumentError(absl::StrCat("frame of ", ToString(header.key), ": codec ",
                                                   codec->name(), " encodes only fp32"));
  }
  if (exact ? header.payload_bytes != largest : header.payload_bytes > largest) {
    return absl::DataLossError(absl::StrCat(
        "frame of ", ToString(header.key), ": ", header.payload_bytes, " payload bytes for ",
        header.elements, " elements, ", exact ? "" : "at most ", largest, " expected"));
  }
  return absl::OkStatus();
}

}  // namespace

void WriteFrameHeader(const FrameHeader& header, absl::string_view payload, char* out) {
  LH_CHECK(payload.size() == header.payload_bytes, payload.size(), " of ", header.payload_bytes);
  std::memset(out, 0, kFrameHeaderBytes);
  std::memcpy(out, kMagic.data(), kMagic.size());
  StoreLittleEndian(kVersion, out + kVersionAt);
  StoreLittleEndian(static_cast<uint16_t>(header.key.kind), out + kKindAt);
  StoreLittleEndian(header.key.epoch.term, out + kTermAt);
  StoreLittleEndian(header.key.epoch.number, out + kNumberAt);
  StoreLittleEndian(header.key.pipeline, out + kPipelineAt);
  StoreLittleEndian(header.key.micro_batch, out + kMicroBatchAt);
  StoreLittleEndian(header.key.step, out + kStepAt);
  StoreLittleEndian(header.key.stage, out + kStageAt);
  StoreLittleEndian(header.key.index, out + kIndexAt);
  StoreLittleEndian(header.run_hash, out + kRunHashAt);
  StoreLittleEndian(header.codec, out + kCodecAt);
  StoreLittleEndian(static_cast<uint8_t>(header.element), out + kElementAt);
  StoreLittleEndian(header.elements, out + kElementsAt);
  StoreLittleEndian(header.payload_bytes, out + kPayloadBytesAt);
  StoreLittleEndian(Checksum(payload), out + kPayloadChecksumAt);
  StoreLittleEndian(Checksum({out, kHeaderChecksumAt}), out + kHeaderChecksumAt);
}

absl::StatusOr<FrameHeader> ParseFrameHeader(absl::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("frame: ", bytes.size(), " bytes are no header of ", kFrameHeaderBytes));
  }
  const char* const in = bytes.data();
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("frame: does not begin with the magic \"LHFR\"");
  }
  const uint16_t version = LoadLittleEndian<uint16_t>(in + kVersionAt);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("frame: version ", version,
                                                   ", this build reads version ", kVersion,
                                                   "; run the same release on every node"));
  }
  if (LoadLittleEndian<uint64_t>(in + kHeaderChecksumAt) !=
      Checksum(bytes.substr(0, kHeaderChecksumAt))) {
    return absl::DataLossError("frame: the header's checksum does not match");
  }
  const FrameHeader header = LoadFields(in);
  if (!ReservedAreZero(in)) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame of ", ToString(header.key), ": a reserved field is not zero"));
  }
  LH_RETURN_IF_ERROR(CheckSizes(header));
  return header;
}

absl::StatusOr<FrameHeader> ParseFrame(absl::string_view bytes) {
  LH_ASSIGN_OR_RETURN(const FrameHeader header, ParseFrameHeader(bytes));
  const absl::string_view payload = bytes.substr(kFrameHeaderBytes);
  if (payload.size() != header.payload_bytes) {
    return absl::DataLossError(absl::StrCat("frame of ", ToString(header.key), ": ", payload.size(),
                                            " payload bytes, its header says ",
                                            header.payload_bytes));
  }
  if (LoadLittleEndian<uint64_t>(bytes.data() + kPayloadChecksumAt) != Checksum(payload)) {
    return absl::DataLossError(
        absl::StrCat("frame of ", ToString(header.key), ": the payload's checksum does not match"));
  }
  return header;
}

uint64_t RunHash(absl::string_view run) {
  const std::string hex = Sha256Hex(run);
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof(hash); ++i) {
    uint32_t byte = 0;
    LH_CHECK(absl::SimpleHexAtoi(hex.substr(2 * i, 2), &byte), hex);
    hash |= uint64_t{byte} << (8 * i);
  }
  return hash;
}

}  // namespace longhaul::compression
