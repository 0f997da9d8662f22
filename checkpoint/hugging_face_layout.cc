#include "checkpoint/hugging_face_layout.h"

#include "absl/strings/match.h"
#include "base/check.h"

namespace longhaul::checkpoint {
namespace {

std::vector<StoredTensor> TensorsOf(const model::ModelSpec& spec,
                                    const model::Parameter& parameter) {
  if (!spec.graph.empty()) {
    StoredTensor tensor;
    tensor.name = parameter.name;
    tensor.shape = parameter.shape;
    return {tensor};
  }
  if (spec.family == "gpt2") return {Gpt2TensorOf(parameter)};
  LH_CHECK(spec.family == "llama", spec.family);
  return LlamaTensorsOf(spec, parameter);
}

}  // namespace

int64_t StoredTensor::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::vector<StoredTensor> StoredTensors(const model::ModelSpec& spec, const model::Graph& graph) {
  std::vector<StoredTensor> tensors;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    for (StoredTensor& tensor : TensorsOf(spec, graph.parameters[p])) {
      tensor.parameter = static_cast<int>(p);
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

bool IsComputedTensor(absl::string_view name) {
  return absl::EndsWith(name, ".attn.bias") || absl::EndsWith(name, ".attn.masked_bias") ||
         absl::EndsWith(name, ".rotary_emb.inv_freq");
}

void Transpose(absl::Span<const float> from, int64_t rows, int64_t columns, absl::Span<float> to) {
  LH_CHECK(static_cast<int64_t>(from.size()) == rows * columns && to.size() == from.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to[static_cast<size_t>(column * rows + row)] =
          from[static_cast<size_t>(row * columns + column)];
    }
  }
}

}  // namespace longhaul::checkpoint
