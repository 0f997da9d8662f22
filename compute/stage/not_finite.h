// Looks for the operator that first writes what is no number.
#ifndef LONGHAUL_COMPUTE_STAGE_NOT_FINITE_H_
#define LONGHAUL_COMPUTE_STAGE_NOT_FINITE_H_

#include "absl/status/status.h"
#include "compute/stage/op_call.h"
#include "compute/stage/stage.h"

namespace longhaul::compute {

// Looks at what forward of an operator wrote, its loss included, and notes it in `found` if it is
// not finite and nearer to the cause than what is noted. Waits for the device.
template <typename T>
absl::Status NoteForward(Backend& backend, const OpCall<T>& call, NotFinite& found);

// The same of the gradients that backward of an operator wrote.
template <typename T>
absl::Status NoteBackward(Backend& backend, const OpCall<T>& call, NotFinite& found);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_NOT_FINITE_H_
