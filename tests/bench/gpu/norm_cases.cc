#include "compute/ops/layer_norm.h"
#include "compute/ops/rms_norm.h"
#include "compute/optim/adamw.h"
#include "compute/optim/sum_of_squares.h"
#include "tests/bench/gpu/operators.h"

namespace longhaul::gpu_check {
namespace {

template <typename T>
OperatorCall<T> LayerNorm(Arrays& arrays, const BlockShape& block) {
  const compute::LayerNormShape shape{block.rows(), block.hidden};
  const auto input = arrays.Values<T>(shape.rows * shape.width);
  const auto weight = arrays.Values<T>(shape.width);
  const auto bias = arrays.Values<T>(shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  const auto statistics = arrays.Zeros<Wide<T>>(2 * shape.rows);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::LayerNormForward<T>(backend, shape, input, weight, bias, output,
                                                    statistics);
              },
          .outputs = {output},
          .wide_outputs = {statistics},
          .bytes = 2.0 * static_cast<double>(output.size()) * sizeof(T)};
}

template <typename T>
OperatorCall<T> LayerNormBackward(Arrays& arrays, const BlockShape& block) {
  const compute::LayerNormShape shape{block.rows(), block.hidden};
  const auto input = arrays.Values<T>(shape.rows * shape.width);
  const auto weight = arrays.Values<T>(shape.width);
  const auto gradient = arrays.Values<T>(shape.rows * shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  const auto statistics = arrays.Zeros<Wide<T>>(2 * shape.rows);
  const auto weight_gradient = arrays.Zeros<Wide<T>>(shape.width);
  const auto bias_gradient = arrays.Zeros<Wide<T>>(shape.width);
  Check(compute::LayerNormForward<T>(arrays.backend(), shape, input, weight, weight, output,
                                     statistics));
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::LayerNormBackward<T>(backend, shape, input, weight, statistics,
                                                     gradient, output, weight_gradient,
                                                     bias_gradient);
              },
          .outputs = {output},
          .wide_outputs = {weight_gradient, bias_gradient},
          .bytes = 3.0 * static_cast<double>(output.size()) * sizeof(T)};
}

template <typename T>
OperatorCall<T> RmsNorm(Arrays& arrays, const BlockShape& block) {
  const compute::RmsNormShape shape{block.rows(), block.hidden};
  const auto input = arrays.Values<T>(shape.rows * shape.width);
  const auto weight = arrays.Values<T>(shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  const auto statistics = arrays.Zeros<Wide<T>>(shape.rows);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::RmsNormForward<T>(backend, shape, input, weight, output,
                                                  statistics);
              },
          .outputs = {output},
          .wide_outputs = {statistics},
          .bytes = 2.0 * static_cast<double>(output.size()) * sizeof(T)};
}

template <typename T>
OperatorCall<T> RmsNormBackward(Arrays& arrays, const BlockShape& block) {
  const compute::RmsNormShape shape{block.rows(), block.hidden};
  const auto input = arrays.Values<T>(shape.rows * shape.width);
  const auto weight = arrays.Values<T>(shape.width);
  const auto gradient = arrays.Values<T>(shape.rows * shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  const auto statistics = arrays.Zeros<Wide<T>>(shape.rows);
  const auto weight_gradient = arrays.Zeros<Wide<T>>(shape.width);
  Check(compute::RmsNormForward<T>(arrays.backend(), shape, input, weight, output, statistics));
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::RmsNormBackward<T>(backend, shape, input, weight, statistics,
                                                   gradient, output, weight_gradient);
              },
          .outputs = {output},
          .wide_outputs = {weight_gradient},
          .bytes = 3.0 * static_cast<double>(output.size()) * sizeof(T)};
}

// Of the weights of one block.
int64_t Weights(const BlockShape& shape) {
  return shape.hidden * (4 * shape.hidden + 2 * shape.ffn);
}

template <typename T>
OperatorCall<T> AdamW(Arrays& arrays, const BlockShape& block) {
  const int64_t elements = Weights(block);
  const compute::AdamWTensor<T> tensor{
      arrays.Values<Wide<T>>(elements), arrays.Values<Wide<T>>(elements),
      arrays.Zeros<Wide<T>>(elements), arrays.Zeros<Wide<T>>(elements), arrays.Zeros<T>(elements)};
  // Gradient, and weights and moments in and out; the working copy is only written.
  const double bytes = 7 * sizeof(Wide<T>) + sizeof(T);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::AdamW<T>(backend, {.learning_rate = 1e-3, .weight_decay = 0.1},
                                         absl::MakeConstSpan(&tensor, 1));
              },
          .outputs = {tensor.working},
          .wide_outputs = {tensor.weights, tensor.first_moment, tensor.second_moment},
          .bytes = bytes * static_cast<double>(elements)};
}

template <typename T>
OperatorCall<T> SumOfSquares(Arrays& arrays, const BlockShape& block) {
  const auto values = arrays.Values<T>(Weights(block));
  const auto sum = std::make_shared<double>(0);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::SumOfSquares<T>(backend, values, sum.get());
              },
          .result = sum,
          .bytes = static_cast<double>(values.size()) * sizeof(T)};
}

}  // namespace

template <typename T>
std::vector<OperatorCase<T>> NormCases() {
  return {{"layer norm", LayerNorm<T>},
          {"layer norm backward", LayerNormBackward<T>},
          {"adamw", AdamW<T>},
          {"sum of squares", SumOfSquares<T>}};
}

template <typename T>
std::vector<OperatorCase<T>> GptOperators() {
  std::vector<OperatorCase<T>> cases = ProductCases<T>();
  for (const auto& more : {NormCases<T>(), ElementCases<T>()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

template <typename T>
std::vector<OperatorCase<T>> LlamaOperators() {
  std::vector<OperatorCase<T>> cases = ProductCases<T>();
  cases.push_back({"rms norm", RmsNorm<T>});
  cases.push_back({"rms norm backward", RmsNormBackward<T>});
  const std::vector<OperatorCase<T>> more = LlamaElementCases<T>();
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

template std::vector<OperatorCase<float>> GptOperators();
template std::vector<OperatorCase<compute::BFloat16>> GptOperators();
template std::vector<OperatorCase<float>> LlamaOperators();
template std::vector<OperatorCase<compute::BFloat16>> LlamaOperators();

}  // namespace longhaul::gpu_check
