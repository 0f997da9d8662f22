#include "compute/stage/fused_call.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add_norm.h"
#include "compute/ops/linear_gelu.h"

namespace longhaul::compute {
namespace {

using model::OpKind;

template <typename T>
int64_t Columns(const OpCall<T>& call, absl::Span<const T> matrix) {
  return static_cast<int64_t>(matrix.size()) / call.rows();
}

template <typename T>
NormShape ShapeOfNorm(const OpCall<T>& call) {
  return {call.rows(), Columns<T>(call, call.output), call.op->epsilon,
          call.op->kind == OpKind::kLayerNorm};
}

template <typename T>
LinearShape ShapeOfLinear(const OpCall<T>& call) {
  return {call.rows(), Columns<T>(call, call.inputs[0]), Columns<T>(call, call.output)};
}

}  // namespace

template <typename T>
absl::Status ForwardTogether(Backend& backend, Fusion fusion, const OpCall<T>& call,
                             const OpCall<T>& next) {
  const auto run = [&] {
    if (fusion == Fusion::kAddNorm) {
      return AddNormForward<T>(backend, ShapeOfNorm(next),
                               {call.inputs[0], call.inputs[1], call.output, next.parameters[0],
                                next.parameters[1], next.output, next.statistics});
    }
    LH_CHECK(fusion == Fusion::kLinearGelu, "fusion ", static_cast<int>(fusion));
    return LinearGeluForward<T>(
        backend, ShapeOfLinear(call),
        {call.inputs[0], call.parameters[0], call.parameters[1], call.output, next.output});
  };
  return Annotate(run(), absl::StrCat(call.op->name, " and ", next.op->name));
}

template <typename T>
absl::Status BackwardTogether(Backend& backend, Fusion fusion, const OpCall<T>& call,
                              const OpCall<T>& before) {
  LH_CHECK(fusion == Fusion::kGeluLinear, "fusion ", static_cast<int>(fusion));
  const absl::Status status = GeluLinearBackward<T>(
      backend, ShapeOfLinear(call),
      {before.inputs[0], call.inputs[0], call.parameters[0], call.output_gradient,
       call.input_gradients[0], before.input_gradients[0], call.parameter_gradients[0],
       call.parameter_gradients[1]});
  return Annotate(status, absl::StrCat("backward of ", before.op->name, " and ", call.op->name));
}

template <typename T>
bool MayRunOnto(const OpCall<T>& call, absl::Span<const T> so_far, absl::Span<T> result) {
  const bool is_norm = call.op->kind == OpKind::kLayerNorm || call.op->kind == OpKind::kRmsNorm;
  return is_norm && IsSameOrApart<T>(so_far, result) &&
         IsSameOrApart<T>(call.output_gradient, result) && IsSameOrApart<T>(call.inputs[0], result);
}

template <typename T>
absl::Status BackwardOnto(Backend& backend, const OpCall<T>& call, absl::Span<const T> so_far,
                          absl::Span<T> result) {
  const absl::Status status = NormBackwardOnto<T>(
      backend, ShapeOfNorm(call),
      {call.inputs[0], call.parameters[0], call.statistics, call.output_gradient, so_far,
       call.input_gradients[0], result, call.parameter_gradients[0], call.parameter_gradients[1]});
  return Annotate(status, absl::StrCat("backward of ", call.op->name));
}

#define LONGHAUL_INSTANTIATE(T)                                                                    \
  template absl::Status ForwardTogether<T>(Backend&, Fusion, const OpCall<T>&, const OpCall<T>&);  \
  template absl::Status BackwardTogether<T>(Backend&, Fusion, const OpCall<T>&, const OpCall<T>&); \
  template bool MayRunOnto<T>(const OpCall<T>&, absl::Span<const T>, absl::Span<T>);               \
  template absl::Status BackwardOnto<T>(Backend&, const OpCall<T>&, absl::Span<const T>,           \
                                        absl::Span<T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
