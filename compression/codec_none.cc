#include "compression/codec_none.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace longhaul::compression {
namespace {

class None final : public Codec {
 public:
  absl::string_view name() const override { return "none"; }
  uint16_t wire_id() const override { return 0; }
  bool lossless() const override { return true; }
  size_t EncodedSizeMax(size_t elements) const override { return elements * sizeof(float); }
  double ExpectedBytesPerElement() const override { return 4.0; }
  double ExpectedEncodeSecondsPerElement() const override { return 0.1e-9; }
  double ExpectedDecodeSecondsPerElement() const override { return 0.1e-9; }

  size_t Encode(absl::Span<const float> values, absl::Span<uint8_t> out) const override {
    const size_t bytes = EncodedSizeMax(values.size());
    LH_CHECK(out.size() >= bytes, out.size(), " bytes for ", values.size(), " values");
    if (bytes > 0) std::memcpy(out.data(), values.data(), bytes);
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> bytes, absl::Span<float> values) const override {
    if (bytes.size() != EncodedSizeMax(values.size())) {
      return absl::DataLossError(absl::StrCat("codec none: ", bytes.size(), " bytes for ",
                                              values.size(), " values, expected ",
                                              EncodedSizeMax(values.size())));
    }
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return absl::OkStatus();
  }
};

}  // namespace

const Codec& NoneCodec() {
  static const None* const codec = new None;
  return *codec;
}

}  // namespace longhaul::compression
