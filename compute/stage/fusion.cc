#include "compute/stage/fusion.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace longhaul::compute {
namespace {

using model::Graph;
using model::Op;
using model::OpKind;

int ReadersOf(const Graph& graph, int edge) {
  int readers = 0;
  for (const Op& op : graph.ops) {
    readers += static_cast<int>(std::count(op.inputs.begin(), op.inputs.end(), edge));
  }
  return readers;
}

bool IsNorm(OpKind kind) { return kind == OpKind::kLayerNorm || kind == OpKind::kRmsNorm; }

Fusion ForwardOf(const Op& op, const Op& next) {
  if (next.inputs.empty() || next.inputs[0] != op.output) return Fusion::kNone;
  if (op.kind == OpKind::kAdd && IsNorm(next.kind)) return Fusion::kAddNorm;
  if (op.kind == OpKind::kLinear && op.parameters.size() == 2 && next.kind == OpKind::kGelu) {
    return Fusion::kLinearGelu;
  }
  return Fusion::kNone;
}

Fusion BackwardOf(const Graph& graph, const Op& op, const Op& next) {
  const bool joins = op.kind == OpKind::kGelu && next.kind == OpKind::kLinear &&
                     next.inputs[0] == op.output && ReadersOf(graph, op.output) == 1;
  return joins ? Fusion::kGeluLinear : Fusion::kNone;
}

// Whether no byte is in both.
template <typename A, typename B>
bool IsApart(absl::Span<A> a, absl::Span<B> b) {
  const auto begin = [](const auto& span) { return reinterpret_cast<uintptr_t>(span.data()); };
  const auto end = [&](const auto& span) {
    return begin(span) + span.size() * sizeof(*span.data());
  };
  return a.empty() || b.empty() || end(a) <= begin(b) || end(b) <= begin(a);
}

}  // namespace

FusionPlan PlanFusions(const Graph& graph, model::OpRange range) {
  FusionPlan plan;
  plan.forward.assign(graph.ops.size(), Fusion::kNone);
  plan.backward = plan.forward;
  for (int position = range.begin; position + 1 < range.end; ++position) {
    const Op &op = graph.ops[position], &next = graph.ops[position + 1];
    plan.forward[position] = ForwardOf(op, next);
    plan.backward[position] = BackwardOf(graph, op, next);
  }
  return plan;
}

template <typename T>
bool IsSameOrApart(absl::Span<const T> from, absl::Span<const T> to) {
  return (from.data() == to.data() && from.size() == to.size()) || IsApart(from, to);
}

template <typename T>
bool MayRunTogether(Fusion fusion, const OpCall<T>& first, const OpCall<T>& next) {
  switch (fusion) {
    case Fusion::kNone:
      return false;
    case Fusion::kAddNorm:
      return std::all_of(first.inputs.begin(), first.inputs.end(), [&](absl::Span<T> input) {
        return IsSameOrApart<T>(input, next.output) && IsApart(input, next.statistics);
      });
    case Fusion::kLinearGelu:
      return IsApart(first.inputs[0], next.output) && IsApart(first.output, next.output);
    case Fusion::kGeluLinear:
      return IsApart(first.output_gradient, next.input_gradients[0]) &&
             IsApart(next.inputs[0], next.input_gradients[0]);
  }
  LH_CHECK(false, "fusion ", static_cast<int>(fusion));
}

#define LONGHAUL_INSTANTIATE(T)                                                \
  template bool MayRunTogether<T>(Fusion, const OpCall<T>&, const OpCall<T>&); \
  template bool IsSameOrApart<T>(absl::Span<const T>, absl::Span<const T>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
