// Which codec a link gets, and what a frame then costs.
#ifndef LONGHAUL_COORDINATOR_PLAN_CODECS_H_
#define LONGHAUL_COORDINATOR_PLAN_CODECS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/codec.h"
#include "coordinator/plan/links.h"

namespace longhaul::coordinator {

// Seconds of one frame in one direction.
struct FrameSeconds {
  double encode = 0;
  double transfer = 0;
  double decode = 0;
  double total() const { return encode + transfer + decode; }
};
FrameSeconds FrameSecondsOf(const compression::Codec& codec, double elements, const Link& link);

// `name` is a codec's, or "auto": the lossless codec with the least seconds for a frame of
// `elements` there and one back, `none` where nothing is faster. A lossy codec changes the result
// and is never chosen, only obeyed. InvalidArgument for an unknown name.
absl::StatusOr<const compression::Codec*> ChooseCodec(absl::string_view name, double elements,
                                                      const Link& there, const Link& back);

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_CODECS_H_
