// Initial values of parameters.
#ifndef LONGHAUL_COMPUTE_STAGE_INITIALIZE_H_
#define LONGHAUL_COMPUTE_STAGE_INITIALIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "model/graph.h"

namespace longhaul::compute {

// Writes the initial values of `parameter`, which is number `index` of its graph, to `weights` on
// the device. Elements 2i and 2i+1 of a normal tensor are the pair of normal numbers made from the
// random bits of (seed, index, i), so a value depends on neither the stage nor the order of
// filling. T is float or double; floats are the doubles rounded.
template <typename T>
absl::Status InitializeParameter(Backend& backend, const model::Parameter& parameter, int index,
                                 uint64_t seed, absl::Span<T> weights);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_INITIALIZE_H_
