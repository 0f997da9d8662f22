#include "compute/ops/causal_attention.h"
#include "compute/ops/linear.h"
#include "tests/bench/gpu/operators.h"

namespace longhaul::gpu_check {
namespace {

using compute::CausalAttentionShape;
using compute::LinearShape;

double Elements(const LinearShape& shape) {
  return static_cast<double>(shape.rows * (shape.in + shape.out) + shape.in * shape.out);
}
double Flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows * shape.in) * static_cast<double>(shape.out);
}

template <typename T>
OperatorCall<T> Forward(Arrays& arrays, const LinearShape& shape, bool has_bias) {
  const auto input = arrays.Values<T>(shape.rows * shape.in);
  const auto weight = arrays.Values<T>(shape.out * shape.in);
  const auto bias = has_bias ? arrays.Values<T>(shape.out) : absl::Span<T>();
  const auto output = arrays.Zeros<T>(shape.rows * shape.pitch());
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::LinearForward<T>(backend, shape, input, weight, bias, output);
              },
          .outputs = {output},
          .bytes = Elements(shape) * sizeof(T),
          .flops = Flops(shape)};
}

template <typename T>
OperatorCall<T> Backward(Arrays& arrays, const LinearShape& shape, bool has_bias) {
  const auto input = arrays.Values<T>(shape.rows * shape.in);
  const auto weight = arrays.Values<T>(shape.out * shape.in);
  const auto gradient = arrays.Values<T>(shape.rows * shape.pitch());
  const auto input_gradient = arrays.Zeros<T>(shape.rows * shape.in);
  const auto weight_gradient = arrays.Zeros<Wide<T>>(shape.out * shape.in);
  const auto bias_gradient = has_bias ? arrays.Zeros<Wide<T>>(shape.out) : absl::Span<Wide<T>>();
  OperatorCall<T> call{.run =
                           [=, &backend = arrays.backend()] {
                             return compute::LinearBackward<T>(backend, shape, input, weight,
                                                               gradient, input_gradient,
                                                               weight_gradient, bias_gradient);
                           },
                       .outputs = {input_gradient},
                       .wide_outputs = {weight_gradient},
                       .bytes = 2 * Elements(shape) * sizeof(T),
                       .flops = 2 * Flops(shape)};
  if (has_bias) call.wide_outputs.push_back(bias_gradient);
  return call;
}

LinearShape Qkv(const BlockShape& shape) { return {shape.rows(), shape.hidden, 3 * shape.hidden}; }
LinearShape Up(const BlockShape& shape) {
  return {shape.rows(), shape.hidden, (shape.gated ? 2 : 1) * shape.ffn};
}
LinearShape Down(const BlockShape& shape) { return {shape.rows(), shape.ffn, shape.hidden}; }
LinearShape Head(const BlockShape& shape) {
  return {shape.rows(), shape.hidden, shape.vocab, shape.logits_pitch()};
}

CausalAttentionShape Attention(const BlockShape& shape) {
  return {shape.sequences, shape.context, shape.heads, shape.heads, shape.hidden};
}

// Of the causal half: scores and values in forward, and five products of that size in backward
// (Dao et al. 2022, appendix B).
double AttentionFlops(const BlockShape& shape, int products) {
  return products * static_cast<double>(shape.rows() * shape.context) *
         static_cast<double>(shape.hidden);
}

template <typename T>
OperatorCall<T> AttentionForward(Arrays& arrays, const BlockShape& block) {
  const CausalAttentionShape shape = Attention(block);
  const auto qkv = arrays.Values<T>(block.rows() * shape.qkv_width());
  const auto output = arrays.Zeros<T>(block.rows() * shape.width);
  const auto lse = arrays.Zeros<Wide<T>>(block.rows() * shape.heads);
  const auto workspace = arrays.Zeros<Wide<T>>(compute::CausalAttentionWorkspace(shape));
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::CausalAttentionForward<T>(backend, shape, qkv, output, lse,
                                                          workspace);
              },
          .outputs = {output},
          .wide_outputs = {lse},
          .bytes = static_cast<double>(qkv.size() + output.size()) * sizeof(T),
          .flops = AttentionFlops(block, 2)};
}

template <typename T>
OperatorCall<T> AttentionBackward(Arrays& arrays, const BlockShape& block) {
  const CausalAttentionShape shape = Attention(block);
  const auto qkv = arrays.Values<T>(block.rows() * shape.qkv_width());
  const auto output_gradient = arrays.Values<T>(block.rows() * shape.width);
  const auto output = arrays.Zeros<T>(block.rows() * shape.width);
  const auto lse = arrays.Zeros<Wide<T>>(block.rows() * shape.heads);
  const auto workspace = arrays.Zeros<Wide<T>>(compute::CausalAttentionWorkspace(shape));
  const auto qkv_gradient = arrays.Zeros<T>(block.rows() * shape.qkv_width());
  Check(compute::CausalAttentionForward<T>(arrays.backend(), shape, qkv, output, lse, workspace));
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::CausalAttentionBackward<T>(
                    backend, shape, qkv, output, lse, output_gradient, qkv_gradient, workspace);
              },
          .outputs = {qkv_gradient},
          .bytes = 2.0 * static_cast<double>(qkv.size() + output.size()) * sizeof(T),
          .flops = AttentionFlops(block, 5)};
}

template <typename T, LinearShape (*kShape)(const BlockShape&), bool kBias = true>
OperatorCall<T> LinearOf(Arrays& arrays, const BlockShape& shape) {
  return Forward<T>(arrays, kShape(shape), kBias && !shape.gated);
}
template <typename T, LinearShape (*kShape)(const BlockShape&), bool kBias = true>
OperatorCall<T> GradientOf(Arrays& arrays, const BlockShape& shape) {
  return Backward<T>(arrays, kShape(shape), kBias && !shape.gated);
}

}  // namespace

template <typename T>
std::vector<OperatorCase<T>> ProductCases() {
  return {{"qkv", LinearOf<T, Qkv>},          {"qkv backward", GradientOf<T, Qkv>},
          {"attention", AttentionForward<T>}, {"attention backward", AttentionBackward<T>},
          {"mlp up", LinearOf<T, Up>},        {"mlp up backward", GradientOf<T, Up>},
          {"mlp down", LinearOf<T, Down>},    {"mlp down backward", GradientOf<T, Down>},
          {"head", LinearOf<T, Head, false>}, {"head backward", GradientOf<T, Head, false>}};
}

template std::vector<OperatorCase<float>> ProductCases();
template std::vector<OperatorCase<compute::BFloat16>> ProductCases();

}  // namespace longhaul::gpu_check
