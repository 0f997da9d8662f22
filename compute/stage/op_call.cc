#include "compute/stage/op_call.h"

#include "absl/status/status.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/ops/add.h"
#include "compute/ops/causal_attention.h"
#include "compute/ops/dropout.h"
#include "compute/ops/embedding.h"
#include "compute/ops/gelu.h"
#include "compute/ops/layer_norm.h"
#include "compute/ops/linear.h"
#include "compute/ops/rms_norm.h"
#include "compute/ops/rotary.h"
#include "compute/ops/softmax_cross_entropy.h"
#include "compute/ops/swiglu.h"
#include "model/op_kinds.h"

namespace longhaul::compute {
namespace {

using model::OpKind;

// With those between its rows.
template <typename T>
int64_t Columns(const OpCall<T>& call, absl::Span<const T> matrix) {
  return static_cast<int64_t>(matrix.size()) / call.rows();
}

template <typename T>
struct EmbeddingCalls {
  static EmbeddingShape Shape(const OpCall<T>& call) {
    const int64_t width = static_cast<int64_t>(call.parameters[0].size()) / call.vocab;
    return {call.rows(), call.context, call.vocab, width};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return EmbeddingForward<T>(backend, Shape(call), call.integers, call.parameters[0],
                               call.parameters[1], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return EmbeddingBackward<T>(backend, Shape(call), call.integers, call.output_gradient,
                                call.parameter_gradients[0], call.parameter_gradients[1]);
  }
};

template <typename T>
struct LayerNormCalls {
  static LayerNormShape Shape(const OpCall<T>& call) {
    return {call.rows(), Columns<T>(call, call.inputs[0]), call.op->epsilon};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return LayerNormForward<T>(backend, Shape(call), call.inputs[0], call.parameters[0],
                               call.parameters[1], call.output, call.statistics);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return LayerNormBackward<T>(backend, Shape(call), call.inputs[0], call.parameters[0],
                                call.statistics, call.output_gradient, call.input_gradients[0],
                                call.parameter_gradients[0], call.parameter_gradients[1]);
  }
};

template <typename T>
struct RmsNormCalls {
  static RmsNormShape Shape(const OpCall<T>& call) {
    return {call.rows(), Columns<T>(call, call.inputs[0]), call.op->epsilon};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return RmsNormForward<T>(backend, Shape(call), call.inputs[0], call.parameters[0], call.output,
                             call.statistics);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return RmsNormBackward<T>(backend, Shape(call), call.inputs[0], call.parameters[0],
                              call.statistics, call.output_gradient, call.input_gradients[0],
                              call.parameter_gradients[0]);
  }
};

template <typename T>
struct LinearCalls {
  static LinearShape Shape(const OpCall<T>& call) {
    const int64_t in = Columns<T>(call, call.inputs[0]);
    const int64_t out = static_cast<int64_t>(call.parameters[0].size()) / in;
    return {call.rows(), in, out, Columns<T>(call, call.output)};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return LinearForward<T>(backend, Shape(call), call.inputs[0], call.parameters[0],
                            call.parameters[1], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return LinearBackward<T>(backend, Shape(call), call.inputs[0], call.parameters[0],
                             call.output_gradient, call.input_gradients[0],
                             call.parameter_gradients[0], call.parameter_gradients[1]);
  }
};

template <typename T>
struct GeluCalls {
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return GeluForward<T>(backend, call.inputs[0], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return GeluBackward<T>(backend, call.inputs[0], call.output_gradient, call.input_gradients[0]);
  }
};

template <typename T>
struct SwiGluCalls {
  static SwiGluShape Shape(const OpCall<T>& call) {
    return {call.rows(), Columns<T>(call, call.inputs[0]) / 2};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return SwiGluForward<T>(backend, Shape(call), call.inputs[0], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return SwiGluBackward<T>(backend, Shape(call), call.inputs[0], call.output_gradient,
                             call.input_gradients[0]);
  }
};

template <typename T>
struct RotaryCalls {
  static RotaryShape Shape(const OpCall<T>& call) {
    const int64_t row_width = Columns<T>(call, call.output);
    const int64_t heads = call.op->heads + call.op->kv_heads;
    return {call.rows(), call.context, heads, row_width / (heads + call.op->kv_heads), row_width};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return RotaryForward<T>(backend, Shape(call), call.constants, call.inputs[0], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return RotaryBackward<T>(backend, Shape(call), call.constants, call.output_gradient,
                             call.input_gradients[0]);
  }
};

template <typename T>
struct CausalAttentionCalls {
  static CausalAttentionShape Shape(const OpCall<T>& call) {
    return {call.batch, call.context, call.op->heads, call.op->kv_heads,
            Columns<T>(call, call.output)};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return CausalAttentionForward<T>(backend, Shape(call), call.inputs[0], call.output,
                                     call.statistics, call.workspace);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return CausalAttentionBackward<T>(backend, Shape(call), call.inputs[0], call.output,
                                      call.statistics, call.output_gradient,
                                      call.input_gradients[0], call.workspace);
  }
};

template <typename T>
struct DropoutCalls {
  // Nothing is dropped: the bits that an operator with probability 0 would write.
  static absl::Status Pass(Backend& backend, absl::Span<const T> from, absl::Span<T> to) {
    LH_CHECK(from.size() == to.size(), from.size(), " values to ", to.size());
    if (from.data() == to.data()) return absl::OkStatus();
    return backend.Copy(to.data(), from.data(), from.size() * sizeof(T));
  }
  static absl::Status Run(Backend& backend, const OpCall<T>& call, absl::Span<const T> from,
                          absl::Span<T> to) {
    if (!call.draws.training || call.op->probability == 0) return Pass(backend, from, to);
    const DropoutShape shape{call.rows(), call.context, Columns<T>(call, to), call.op->probability};
    const DropoutKey key{call.draws.seed, call.draws.step, call.draws.first_sequence,
                         call.position};
    return Dropout<T>(backend, shape, key, from, to);
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return Run(backend, call, call.inputs[0], call.output);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return Run(backend, call, call.output_gradient, call.input_gradients[0]);
  }
};

template <typename T>
struct AddCalls {
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    return Add<T>(backend, call.inputs[0], call.inputs[1], call.output);
  }
  // The output's gradient is each input's contribution as it is; the stage passes it on.
  static absl::Status Backward(Backend&, const OpCall<T>&) { return absl::OkStatus(); }
};

template <typename T>
struct LossCalls {
  static SoftmaxCrossEntropyShape Shape(const OpCall<T>& call) {
    return {call.rows(), call.vocab, Columns<T>(call, call.inputs[0])};
  }
  static absl::Status Forward(Backend& backend, const OpCall<T>& call) {
    if (call.loss_sum == nullptr) return absl::OkStatus();
    return SoftmaxCrossEntropyForward<T>(backend, Shape(call), call.inputs[0], call.integers,
                                         call.loss_sum);
  }
  static absl::Status Backward(Backend& backend, const OpCall<T>& call) {
    return SoftmaxCrossEntropyBackward<T>(backend, Shape(call), call.inputs[0], call.integers,
                                          call.input_gradients[0]);
  }
};

template <typename T>
struct OpTableRow {
  OpKind kind;
  absl::Status (*forward)(Backend&, const OpCall<T>&);
  absl::Status (*backward)(Backend&, const OpCall<T>&);
};

template <typename T, typename Calls>
constexpr OpTableRow<T> Row(OpKind kind) {
  return {kind, &Calls::Forward, &Calls::Backward};
}

// A new operator is a struct above and one line here.
template <typename T>
const OpTableRow<T>& RowOf(OpKind kind) {
  static constexpr OpTableRow<T> kTable[] = {
      Row<T, EmbeddingCalls<T>>(OpKind::kEmbedding),
      Row<T, LayerNormCalls<T>>(OpKind::kLayerNorm),
      Row<T, RmsNormCalls<T>>(OpKind::kRmsNorm),
      Row<T, LinearCalls<T>>(OpKind::kLinear),
      Row<T, GeluCalls<T>>(OpKind::kGelu),
      Row<T, SwiGluCalls<T>>(OpKind::kSwiGlu),
      Row<T, RotaryCalls<T>>(OpKind::kRotary),
      Row<T, CausalAttentionCalls<T>>(OpKind::kCausalAttention),
      Row<T, DropoutCalls<T>>(OpKind::kDropout),
      Row<T, AddCalls<T>>(OpKind::kAdd),
      Row<T, LossCalls<T>>(OpKind::kSoftmaxCrossEntropy),
  };
  for (const OpTableRow<T>& row : kTable) {
    if (row.kind == kind) return row;
  }
  LH_CHECK(false, "operator kind ", static_cast<int>(kind));
}

}  // namespace

template <typename T>
absl::Status ForwardOp(Backend& backend, const OpCall<T>& call) {
  return Annotate(RowOf<T>(call.op->kind).forward(backend, call), call.op->name);
}

template <typename T>
absl::Status BackwardOp(Backend& backend, const OpCall<T>& call) {
  const absl::Status status = RowOf<T>(call.op->kind).backward(backend, call);
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat("backward of ", call.op->name));
}

template <typename T>
absl::Status FillConstants(Backend& backend, const model::Graph& graph, const model::Op& op,
                           absl::Span<Wide<T>> constants) {
  LH_CHECK(op.kind == OpKind::kRotary, op.name, " has no constants");
  const RotarySpec spec{graph.context, model::HeadWidth(graph, op), op.rotary.theta,
                        op.rotary.scaling};
  return Annotate(RotaryTable<T>(backend, spec, constants), op.name);
}

template <typename T>
absl::StatusOr<std::string> PrepareOp(Backend& backend, const OpCall<T>& call) {
  if (call.op->kind != OpKind::kCausalAttention) return std::string();
  return CausalAttentionKernel<T>(backend, CausalAttentionCalls<T>::Shape(call));
}

int64_t WorkspaceOf(const model::Graph& graph, const model::Op& op, int64_t micro_batch) {
  if (op.kind != OpKind::kCausalAttention) return 0;
  return CausalAttentionWorkspace(
      {micro_batch, graph.context, op.heads, op.kv_heads, graph.edges[op.output].width});
}

#define LONGHAUL_INSTANTIATE(T)                                                           \
  template absl::Status ForwardOp(Backend&, const OpCall<T>&);                            \
  template absl::Status BackwardOp(Backend&, const OpCall<T>&);                           \
  template absl::StatusOr<std::string> PrepareOp<T>(Backend&, const OpCall<T>&);          \
  template absl::Status FillConstants<T>(Backend&, const model::Graph&, const model::Op&, \
                                         absl::Span<Wide<T>>);
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
