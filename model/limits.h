// Upper bounds on what a model may be. They keep every product of sizes far inside int64, so that
// no number a user or a peer states can overflow.
#ifndef LONGHAUL_MODEL_LIMITS_H_
#define LONGHAUL_MODEL_LIMITS_H_

#include <cstdint>

namespace longhaul::model {

inline constexpr int64_t kLayersMax = 1024;
inline constexpr int64_t kHiddenMax = 65536;
inline constexpr int64_t kFeedForwardMax = int64_t{1} << 22;
inline constexpr int64_t kContextMax = int64_t{1} << 20;
inline constexpr int64_t kVocabMax = int64_t{1} << 24;

inline constexpr int64_t kOpsMax = int64_t{1} << 16;
inline constexpr int64_t kWidthMax = int64_t{1} << 24;            // columns of one edge
inline constexpr int64_t kTotalWidthMax = int64_t{1} << 32;       // columns of all edges
inline constexpr int64_t kTotalParametersMax = int64_t{1} << 48;  // elements of all parameters
inline constexpr int64_t kRowsMax = int64_t{1} << 24;             // tokens of one micro-batch
// Of initial weights: far draws with a greater one are no floats.
inline constexpr double kStandardDeviationMax = 1e30;

// Byte counts of plans saturate here: no machine has as much, and sums of a few still fit.
inline constexpr int64_t kBytesMax = int64_t{1} << 59;

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_LIMITS_H_
