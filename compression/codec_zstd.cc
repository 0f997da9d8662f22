#include "compression/codec_zstd.h"

#include <xxhash.h>
#include <zstd.h>

#include <array>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compression/little_endian.h"

namespace longhaul::compression {
namespace {

constexpr size_t kPlanes = sizeof(float);
constexpr size_t kHeaderBytes = sizeof(uint64_t) * (1 + kPlanes);
constexpr int kLevel = 1;

// What zstd needs to work with. One a thread, so that codecs stay stateless and a steady stream of
// tensors of one size allocates nothing.
struct Workspace {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> compress{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> decompress{ZSTD_createDCtx(), ZSTD_freeDCtx};
  std::vector<uint8_t> plane;
};

Workspace& ThreadWorkspace() {
  thread_local Workspace workspace;
  LH_CHECK(workspace.compress != nullptr && workspace.decompress != nullptr, "out of memory");
  return workspace;
}

uint64_t Checksum(absl::Span<const float> values) {
  return XXH3_64bits(values.data(), values.size() * sizeof(float));
}

void GatherPlane(absl::Span<const float> values, size_t plane, uint8_t* out) {
  const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = bytes[i * kPlanes + plane];
}

void ScatterPlane(const uint8_t* from, size_t plane, absl::Span<float> values) {
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(values.data());
  for (size_t i = 0; i < values.size(); ++i) bytes[i * kPlanes + plane] = from[i];
}

// Writes one plane of `plane.size()` > 0 bytes to `out`, which has as many, and returns its size:
// smaller if it compresses, else the plane as it is.
size_t EncodePlane(absl::Span<const uint8_t> plane, Workspace& workspace, uint8_t* out) {
  const size_t size = ZSTD_compressCCtx(workspace.compress.get(), out, plane.size() - 1,
                                        plane.data(), plane.size(), kLevel);
  if (!ZSTD_isError(size)) return size;
  std::memcpy(out, plane.data(), plane.size());
  return plane.size();
}

// Decompresses one zstd frame of exactly `plane.size()` bytes.
absl::Status DecodePlane(absl::Span<const uint8_t> bytes, Workspace& workspace,
                         absl::Span<uint8_t> plane) {
  if (ZSTD_getFrameContentSize(bytes.data(), bytes.size()) != plane.size()) {
    return absl::DataLossError("codec zstd: a plane does not say that it has the expected size");
  }
  if (ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) != bytes.size()) {
    return absl::DataLossError("codec zstd: a plane is not exactly one zstd frame");
  }
  const size_t size = ZSTD_decompressDCtx(workspace.decompress.get(), plane.data(), plane.size(),
                                          bytes.data(), bytes.size());
  if (ZSTD_isError(size)) {
    return absl::DataLossError(absl::StrCat("codec zstd: ", ZSTD_getErrorName(size)));
  }
  if (size != plane.size()) return absl::DataLossError("codec zstd: a plane is too short");
  return absl::OkStatus();
}

// The four planes' bytes, checked against the whole's size and the values' number.
absl::StatusOr<std::array<absl::Span<const uint8_t>, kPlanes>> SplitPlanes(
    absl::Span<const uint8_t> bytes, size_t elements) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kHeaderBytes + kPlanes * elements) {
    return absl::DataLossError(absl::StrCat("codec zstd: ", bytes.size(), " bytes for ", elements,
                                            " values, expected ", kHeaderBytes, " to ",
                                            kHeaderBytes + kPlanes * elements));
  }
  std::array<absl::Span<const uint8_t>, kPlanes> planes;
  absl::Span<const uint8_t> rest = bytes.subspan(kHeaderBytes);
  for (size_t k = 0; k < kPlanes; ++k) {
    const uint64_t size = LoadLittleEndian<uint64_t>(bytes.data() + sizeof(uint64_t) * (1 + k));
    if (size > elements || size > rest.size()) {
      return absl::DataLossError(absl::StrCat("codec zstd: plane ", k, " of ", size, " bytes for ",
                                              elements, " values, ", rest.size(), " bytes left"));
    }
    planes[k] = rest.subspan(0, size);
    rest.remove_prefix(size);
  }
  if (!rest.empty()) {
    return absl::DataLossError(absl::StrCat("codec zstd: ", rest.size(), " bytes too many"));
  }
  return planes;
}

class Zstd final : public Codec {
 public:
  absl::string_view name() const override { return "zstd"; }
  uint16_t wire_id() const override { return 3; }
  bool lossless() const override { return true; }
  size_t EncodedSizeMax(size_t elements) const override {
    return kHeaderBytes + kPlanes * elements;
  }
  // Measured on normally distributed values, which is what activations and gradients resemble.
  double ExpectedBytesPerElement() const override { return 3.4; }
  double ExpectedEncodeSecondsPerElement() const override { return 5e-9; }
  double ExpectedDecodeSecondsPerElement() const override { return 2.5e-9; }

  size_t Encode(absl::Span<const float> values, absl::Span<uint8_t> out) const override {
    LH_CHECK(out.size() >= EncodedSizeMax(values.size()), out.size(), " bytes for ", values.size(),
             " values");
    Workspace& workspace = ThreadWorkspace();
    workspace.plane.resize(values.size());
    StoreLittleEndian(Checksum(values), out.data());
    size_t written = kHeaderBytes;
    for (size_t k = 0; k < kPlanes; ++k) {
      size_t size = 0;
      if (!values.empty()) {
        GatherPlane(values, k, workspace.plane.data());
        size = EncodePlane(workspace.plane, workspace, out.data() + written);
      }
      StoreLittleEndian(uint64_t{size}, out.data() + sizeof(uint64_t) * (1 + k));
      written += size;
    }
    return written;
  }

  absl::Status Decode(absl::Span<const uint8_t> bytes, absl::Span<float> values) const override {
    LH_ASSIGN_OR_RETURN(const auto planes, SplitPlanes(bytes, values.size()));
    Workspace& workspace = ThreadWorkspace();
    workspace.plane.resize(values.size());
    for (size_t k = 0; k < kPlanes; ++k) {
      const bool raw = planes[k].size() == values.size();
      if (!raw) {
        LH_RETURN_IF_ERROR(DecodePlane(planes[k], workspace, absl::MakeSpan(workspace.plane)));
      }
      ScatterPlane(raw ? planes[k].data() : workspace.plane.data(), k, values);
    }
    if (LoadLittleEndian<uint64_t>(bytes.data()) != Checksum(values)) {
      return absl::DataLossError("codec zstd: the values' checksum does not match");
    }
    return absl::OkStatus();
  }
};

}  // namespace

const Codec& ZstdCodec() {
  static const Zstd* const codec = new Zstd;
  return *codec;
}

}  // namespace longhaul::compression
