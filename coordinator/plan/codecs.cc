#include "coordinator/plan/codecs.h"

namespace longhaul::coordinator {

using compression::Codec;

FrameSeconds FrameSecondsOf(const Codec& codec, double elements, const Link& link) {
  return {.encode = elements * codec.ExpectedEncodeSecondsPerElement(),
          .transfer = elements * codec.ExpectedBytesPerElement() / link.bytes_per_second,
          .decode = elements * codec.ExpectedDecodeSecondsPerElement()};
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
