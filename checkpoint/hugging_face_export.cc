#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/hugging_face_layout.h"
#include "checkpoint/safetensors.h"
#include "model/hugging_face.h"

namespace longhaul::checkpoint {
namespace {

absl::Status CheckSizes(const ModelWeights& weights, const model::Graph& graph) {
  if (weights.parameters.size() != graph.parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", graph.parameters.size(),
                                                   " parameters, not ", weights.parameters.size()));
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const model::Parameter& parameter = graph.parameters[i];
    if (static_cast<int64_t>(weights.parameters[i].size()) != parameter.elements()) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name, "' has ",
                                                     parameter.elements(), " elements, not ",
                                                     weights.parameters[i].size()));
    }
  }
  return absl::OkStatus();
}

absl::string_view BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string Weights(const ModelWeights& weights, const model::Graph& graph) {
  const std::vector<StoredTensor> stored = StoredTensors(weights.spec, graph);
  std::vector<std::vector<float>> transposed;
  transposed.reserve(stored.size());  // views point into its elements
  std::vector<TensorView> tensors;
  for (const StoredTensor& tensor : stored) {
    const size_t elements = static_cast<size_t>(tensor.elements());
    absl::Span<const float> values =
        absl::MakeConstSpan(weights.parameters[static_cast<size_t>(tensor.parameter)])
            .subspan(static_cast<size_t>(tensor.offset), elements);
    if (tensor.transposed) {
      std::vector<float>& copy = transposed.emplace_back(elements);
      Transpose(values, tensor.shape[1], tensor.shape[0], absl::MakeSpan(copy));
      values = copy;
    }
    tensors.push_back({tensor.name, "F32", tensor.shape, BytesOf(values)});
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return WriteSafetensors(tensors, {{"format", "pt"}});
}

}  // namespace

absl::StatusOr<HuggingFaceFiles> ExportHuggingFace(const ModelWeights& weights) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  LH_RETURN_IF_ERROR(CheckSizes(weights, graph));
  const bool own = !weights.spec.graph.empty();
  return HuggingFaceFiles{own ? "" : model::HuggingFaceConfig(weights.spec),
                          Weights(weights, graph), own ? weights.spec.graph + "\n" : ""};
}

}  // namespace longhaul::checkpoint
