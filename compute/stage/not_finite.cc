#include "compute/stage/not_finite.h"

#include <array>
#include <cmath>

#include "base/status_macros.h"
#include "compute/optim/sum_of_squares.h"

namespace longhaul::compute {
namespace {

template <typename Value>
absl::StatusOr<bool> IsBad(Backend& backend, absl::Span<Value> values) {
  double sum = 0;
  LH_RETURN_IF_ERROR(SumOfSquares<Value>(backend, values, &sum));
  LH_RETURN_IF_ERROR(backend.Synchronize());
  return !std::isfinite(sum);
}

template <typename Value>
absl::StatusOr<bool> AnyIsBad(Backend& backend, const std::array<absl::Span<Value>, 2>& tensors) {
  LH_ASSIGN_OR_RETURN(const bool first, IsBad(backend, tensors[0]));
  if (first) return true;
  return IsBad(backend, tensors[1]);
}

}  // namespace

template <typename T>
absl::Status NoteForward(Backend& backend, const OpCall<T>& call, NotFinite& found) {
  if (found.forward >= 0 && found.forward <= call.position) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(bool bad, IsBad(backend, call.output));
  if (call.loss_sum != nullptr && call.op->kind == model::OpKind::kSoftmaxCrossEntropy) {
    bad = bad || !std::isfinite(*call.loss_sum);
  }
  if (bad) found.forward = call.position;
  return absl::OkStatus();
}

template <typename T>
absl::Status NoteBackward(Backend& backend, const OpCall<T>& call, NotFinite& found) {
  if (found.backward >= call.position) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const bool bad_input, AnyIsBad(backend, call.input_gradients));
  LH_ASSIGN_OR_RETURN(const bool bad_parameter, AnyIsBad(backend, call.parameter_gradients));
  if (bad_input || bad_parameter) found.backward = call.position;
  return absl::OkStatus();
}

#define LONGHAUL_INSTANTIATE(T)                                                 \
  template absl::Status NoteForward<T>(Backend&, const OpCall<T>&, NotFinite&); \
  template absl::Status NoteBackward<T>(Backend&, const OpCall<T>&, NotFinite&);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
