// Calls what two operators of the graph are together.
#ifndef LONGHAUL_COMPUTE_STAGE_FUSED_CALL_H_
#define LONGHAUL_COMPUTE_STAGE_FUSED_CALL_H_

#include "absl/status/status.h"
#include "compute/stage/fusion.h"
#include "compute/stage/op_call.h"

namespace longhaul::compute {

// Forward of an operator and the next one; MayRunTogether of them.
template <typename T>
absl::Status ForwardTogether(Backend& backend, Fusion fusion, const OpCall<T>& call,
                             const OpCall<T>& next);

// Backward of an operator and of the one before it, as the kind says; MayRunTogether of them. The
// gradient of the edge between them need not be written.
template <typename T>
absl::Status BackwardTogether(Backend& backend, Fusion fusion, const OpCall<T>& call,
                              const OpCall<T>& before);

// Whether backward of the operator can add its input's gradient onto what other readers of the edge
// made: it is a norm and the memory allows it.
template <typename T>
bool MayRunOnto(const OpCall<T>& call, absl::Span<const T> so_far, absl::Span<T> result);
// result = so_far + the gradient of the input, which the call has room for.
template <typename T>
absl::Status BackwardOnto(Backend& backend, const OpCall<T>& call, absl::Span<const T> so_far,
                          absl::Span<T> result);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_FUSED_CALL_H_
