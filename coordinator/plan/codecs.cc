#include "coordinator/plan/codecs.h"

namespace longhaul::coordinator {

using compression::Codec;

namespace {

// Values are read and bytes written, or the other way round; zstd has no kernels for cards.
double CodecSeconds(const Codec& codec, double elements, double card_bytes_per_second,
                    double seconds_per_element) {
  if (card_bytes_per_second == 0 || codec.name() == "zstd") return elements * seconds_per_element;
  return elements * (sizeof(float) + codec.ExpectedBytesPerElement()) / card_bytes_per_second;
}

}  // namespace

FrameSeconds FrameSecondsOf(const Codec& codec, double elements, const Link& link) {
  return {.encode = CodecSeconds(codec, elements, link.from_card_bytes_per_second,
                                 codec.ExpectedEncodeSecondsPerElement()),
          .transfer = elements * codec.ExpectedBytesPerElement() / link.bytes_per_second,
          .decode = CodecSeconds(codec, elements, link.to_card_bytes_per_second,
                                 codec.ExpectedDecodeSecondsPerElement())};
}

absl::StatusOr<const Codec*> ChooseCodec(absl::string_view name, double elements, const Link& there,
                                         const Link& back) {
  if (name != "auto") return compression::FindCodec(name);
  const auto seconds = [&](const Codec& codec) {
    return FrameSecondsOf(codec, elements, there).total() +
           FrameSecondsOf(codec, elements, back).total();
  };
  absl::StatusOr<const Codec*> best = compression::FindCodec("none");
  if (!best.ok()) return best;
  for (const Codec* codec : compression::AllCodecs()) {
    if (codec->lossless() && seconds(*codec) < seconds(**best)) best = codec;
  }
  return best;
}

}  // namespace longhaul::coordinator
