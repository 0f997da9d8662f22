#include "compute/ops/add.h"
#include "compute/ops/dropout.h"
#include "compute/ops/embedding.h"
#include "compute/ops/gelu.h"
#include "compute/ops/rotary.h"
#include "compute/ops/softmax_cross_entropy.h"
#include "compute/ops/swiglu.h"
#include "tests/bench/gpu/operators.h"

namespace longhaul::gpu_check {
namespace {

// An operator from inputs of `elements` to one output of as many.
template <typename T, typename Run>
OperatorCall<T> ElementWise(Arrays& arrays, int64_t elements, int inputs, Run run) {
  std::vector<absl::Span<const T>> given;
  for (int i = 0; i < inputs; ++i) given.push_back(arrays.Values<T>(elements));
  const auto output = arrays.Zeros<T>(elements);
  return {.run = [=, &backend = arrays.backend()] { return run(backend, given, output); },
          .outputs = {output},
          .bytes = static_cast<double>((inputs + 1) * elements) * sizeof(T)};
}

template <typename T>
using Inputs = std::vector<absl::Span<const T>>;

template <typename T>
OperatorCall<T> Add(Arrays& arrays, const BlockShape& shape) {
  return ElementWise<T>(arrays, shape.rows() * shape.hidden, 2,
                        [](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
                          return compute::Add<T>(backend, in[0], in[1], out);
                        });
}

template <typename T>
OperatorCall<T> Dropout(Arrays& arrays, const BlockShape& shape) {
  const compute::DropoutShape dropout{shape.rows(), shape.context, shape.hidden, 0.1};
  return ElementWise<T>(arrays, shape.rows() * shape.hidden, 1,
                        [=](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
                          return compute::Dropout<T>(backend, dropout, {.seed = 1, .step = 1},
                                                     in[0], out);
                        });
}

template <typename T>
OperatorCall<T> Gelu(Arrays& arrays, const BlockShape& shape) {
  return ElementWise<T>(arrays, shape.rows() * shape.ffn, 1,
                        [](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
                          return compute::GeluForward<T>(backend, in[0], out);
                        });
}

template <typename T>
OperatorCall<T> GeluBackward(Arrays& arrays, const BlockShape& shape) {
  return ElementWise<T>(arrays, shape.rows() * shape.ffn, 2,
                        [](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
                          return compute::GeluBackward<T>(backend, in[0], in[1], out);
                        });
}

template <typename T>
OperatorCall<T> Embedding(Arrays& arrays, const BlockShape& block) {
  const compute::EmbeddingShape shape{block.rows(), block.context, block.vocab, block.hidden};
  const auto tokens = arrays.Ids(shape.rows, shape.vocab);
  const auto table = arrays.Values<T>(shape.vocab * shape.width);
  const auto positions = arrays.Values<T>(shape.context * shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::EmbeddingForward<T>(backend, shape, tokens, table, positions,
                                                    output);
              },
          .outputs = {output},
          .bytes = 2.0 * static_cast<double>(output.size()) * sizeof(T)};
}

template <typename T>
OperatorCall<T> EmbeddingBackward(Arrays& arrays, const BlockShape& block) {
  const compute::EmbeddingShape shape{block.rows(), block.context, block.vocab, block.hidden};
  const auto tokens = arrays.Ids(shape.rows, shape.vocab);
  const auto gradient = arrays.Values<T>(shape.rows * shape.width);
  const auto table = arrays.Zeros<Wide<T>>(shape.vocab * shape.width);
  const auto positions = arrays.Zeros<Wide<T>>(shape.context * shape.width);
  // Each row of the gradient once, and the row of the table it is added to.
  const double elements = static_cast<double>(gradient.size());
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::EmbeddingBackward<T>(backend, shape, tokens, gradient, table,
                                                     positions);
              },
          .wide_outputs = {table, positions},
          .bytes = elements * (sizeof(T) + 2 * sizeof(Wide<T>))};
}

template <typename T>
OperatorCall<T> CrossEntropy(Arrays& arrays, const BlockShape& block) {
  const compute::SoftmaxCrossEntropyShape shape{block.rows(), block.vocab, block.logits_pitch()};
  const auto logits = arrays.Values<T>(shape.rows * shape.pitch());
  const auto targets = arrays.Ids(shape.rows, shape.vocab);
  const auto loss = std::make_shared<double>(0);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::SoftmaxCrossEntropyForward<T>(backend, shape, logits, targets,
                                                              loss.get());
              },
          .result = loss,
          .bytes = static_cast<double>(shape.rows * shape.vocab) * sizeof(T)};
}

template <typename T>
OperatorCall<T> CrossEntropyBackward(Arrays& arrays, const BlockShape& block) {
  const compute::SoftmaxCrossEntropyShape shape{block.rows(), block.vocab, block.logits_pitch()};
  const auto targets = arrays.Ids(shape.rows, shape.vocab);
  return ElementWise<T>(arrays, shape.rows * shape.pitch(), 1,
                        [=](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
                          return compute::SoftmaxCrossEntropyBackward<T>(backend, shape, in[0],
                                                                         targets, out);
                        });
}

template <typename T, bool kForward>
OperatorCall<T> Rotary(Arrays& arrays, const BlockShape& block) {
  const int64_t head_width = block.hidden / block.heads;
  const compute::RotaryShape shape{block.rows(), block.context, 2 * block.heads, head_width,
                                   3 * block.hidden};
  const auto table = arrays.Zeros<Wide<T>>(block.context * head_width);
  Check(compute::RotaryTable<T>(arrays.backend(),
                                {.context = block.context, .head_width = head_width, .scaling = {}},
                                table));
  return ElementWise<T>(
      arrays, shape.rows * shape.row_width, 1,
      [=](compute::Backend& backend, const Inputs<T>& in, absl::Span<T> out) {
        return kForward ? compute::RotaryForward<T>(backend, shape, table, in[0], out)
                        : compute::RotaryBackward<T>(backend, shape, table, in[0], out);
      });
}

template <typename T>
OperatorCall<T> SwiGlu(Arrays& arrays, const BlockShape& block) {
  const compute::SwiGluShape shape{block.rows(), block.ffn};
  const auto input = arrays.Values<T>(2 * shape.rows * shape.width);
  const auto output = arrays.Zeros<T>(shape.rows * shape.width);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::SwiGluForward<T>(backend, shape, input, output);
              },
          .outputs = {output},
          .bytes = 3.0 * static_cast<double>(output.size()) * sizeof(T)};
}

template <typename T>
OperatorCall<T> SwiGluBackward(Arrays& arrays, const BlockShape& block) {
  const compute::SwiGluShape shape{block.rows(), block.ffn};
  const auto input = arrays.Values<T>(2 * shape.rows * shape.width);
  const auto gradient = arrays.Values<T>(shape.rows * shape.width);
  const auto input_gradient = arrays.Zeros<T>(2 * shape.rows * shape.width);
  return {.run =
              [=, &backend = arrays.backend()] {
                return compute::SwiGluBackward<T>(backend, shape, input, gradient, input_gradient);
              },
          .outputs = {input_gradient},
          .bytes = 5.0 * static_cast<double>(gradient.size()) * sizeof(T)};
}

}  // namespace

template <typename T>
std::vector<OperatorCase<T>> ElementCases() {
  return {{"embedding", Embedding<T>},
          {"embedding backward", EmbeddingBackward<T>},
          {"add", Add<T>},
          {"dropout", Dropout<T>},
          {"gelu", Gelu<T>},
          {"gelu backward", GeluBackward<T>},
          {"cross-entropy", CrossEntropy<T>},
          {"cross-entropy backward", CrossEntropyBackward<T>}};
}

template <typename T>
std::vector<OperatorCase<T>> LlamaElementCases() {
  return {{"rotary", Rotary<T, true>},
          {"rotary backward", Rotary<T, false>},
          {"swiglu", SwiGlu<T>},
          {"swiglu backward", SwiGluBackward<T>}};
}

template std::vector<OperatorCase<float>> ElementCases();
template std::vector<OperatorCase<compute::BFloat16>> ElementCases();
template std::vector<OperatorCase<float>> LlamaElementCases();
template std::vector<OperatorCase<compute::BFloat16>> LlamaElementCases();

}  // namespace longhaul::gpu_check
