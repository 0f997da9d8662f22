#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

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

// What model.safetensors is made of.
struct Content {
  ModelWeights weights;
  std::vector<StoredTensor> tensors;  // by name
};

absl::Status AppendTensor(const Content& content, const StoredTensor& tensor, AppendPiece append) {
  const size_t elements = static_cast<size_t>(tensor.elements());
  const absl::Span<const float> values =
      absl::MakeConstSpan(content.weights.parameters[static_cast<size_t>(tensor.parameter)])
          .subspan(static_cast<size_t>(tensor.offset), elements);
  if (!tensor.transposed) return append(BytesOf(values));
  std::vector<float> transposed(elements);
  Transpose(values, tensor.shape[1], tensor.shape[0], absl::MakeSpan(transposed));
  return append(BytesOf(transposed));
}

absl::Status AppendWeights(const Content& content, AppendPiece append) {
  std::vector<TensorView> views;
  for (const StoredTensor& tensor : content.tensors) {
    views.push_back({tensor.name, "F32", tensor.shape, ""});
  }
  LH_RETURN_IF_ERROR(append(SafetensorsHeader(views, {{"format", "pt"}})));
  for (const StoredTensor& tensor : content.tensors) {
    LH_RETURN_IF_ERROR(AppendTensor(content, tensor, append));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceFiles> ExportHuggingFace(ModelWeights weights) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  LH_RETURN_IF_ERROR(CheckSizes(weights, graph));
  HuggingFaceFiles files;
  if (weights.spec.graph.empty()) {
    files.config_json = model::HuggingFaceConfig(weights.spec);
  } else {
    files.graph_json = weights.spec.graph + "\n";
  }
  Content content;
  content.tensors = StoredTensors(weights.spec, graph);
  std::sort(content.tensors.begin(), content.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  content.weights = std::move(weights);
  files.model_safetensors = [shared = std::make_shared<const Content>(std::move(content))](
                                AppendPiece append) { return AppendWeights(*shared, append); };
  return files;
}

}  // namespace longhaul::checkpoint
