// The names of things: epochs, and the key that every slot, frame, trace line and error shares.
#ifndef LONGHAUL_BASE_IDS_H_
#define LONGHAUL_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace longhaul {

// The plan in force. `term` rises when a coordinator loses its state or hands over; `number` with
// every re-plan of a run. Everything of an older epoch is refused.
struct Epoch {
  uint32_t term = 0;
  uint32_t number = 0;
  auto operator<=>(const Epoch&) const = default;
};

// What a frame carries. The values are on the wire: append, never renumber.
enum class FrameKind : uint16_t {
  kActivation = 1,            // stage s -> s+1, one micro-batch
  kGradient = 2,              // stage s -> s-1, one micro-batch
  kNorms = 3,                 // stage s -> s-1, once a step: fp64 sums of squares of stages >= s
  kVerdict = 4,               // stage s -> s+1, once a step: total norm, apply or skip, directive
  kTiedGradient = 5,          // last stage -> first, once a step: the head use's accumulator
  kTiedSum = 6,               // first stage -> last, once a step: embedding + head
  kEvaluationActivation = 7,  // stage s -> s+1, one micro-batch of the validation split
};

// The key of everything within one run: (run, epoch, pipeline, step, micro-batch, stage, kind,
// index); the run is fixed by the connection or object that the key is used with.
struct FrameKey {
  Epoch epoch;
  uint32_t pipeline = 0;
  uint64_t step = 0;
  uint32_t micro_batch = 0;
  uint32_t stage = 0;  // the stage that consumes the frame
  FrameKind kind = FrameKind::kActivation;
  uint32_t index = 0;  // of a tied parameter among those that two stages share; else 0
  auto operator<=>(const FrameKey&) const = default;
};

// "activation", "gradient", ...; "kind-N" for a number this build does not know.
std::string FrameKindName(FrameKind kind);
// "1.4": term.number.
std::string ToString(const Epoch& epoch);
// "epoch 1.4 step 17 micro-batch 3 stage 2 activation"; pipeline and index too unless they are 0.
std::string ToString(const FrameKey& key);

// Names of runs, nodes and sites: 1 to 63 of [a-z A-Z 0-9 . _ -], beginning with a letter or digit,
// so that they are safe as file names, label values and certificate names. `what` is for the
// message ("run name").
absl::Status ValidateName(absl::string_view what, absl::string_view name);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_IDS_H_
