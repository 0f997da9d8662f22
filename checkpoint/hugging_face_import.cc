#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "checkpoint/float_formats.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/hugging_face_layout.h"
#include "checkpoint/weight_files.h"
#include "model/graph_json.h"
#include "model/hugging_face.h"

namespace longhaul::checkpoint {
namespace {

constexpr int64_t kElementBytesMin = 2;  // F16, BF16
constexpr char kHeadTensor[] = "lm_head.weight";
constexpr char kGpt2Prefix[] = "transformer.";

// Takes tensors as they come and puts them where they belong.
class Collector {
 public:
  // All must outlive it; `weights` has its spec.
  Collector(const model::Graph& graph, ModelWeights& weights) : graph_(graph), weights_(weights) {
    for (StoredTensor& tensor : StoredTensors(weights.spec, graph)) {
      std::string name = tensor.name;
      expected_.emplace(std::move(name), std::move(tensor));
    }
    weights_.parameters.resize(graph.parameters.size());
  }

  absl::Status Take(const TensorView& tensor) {
    const std::string name = FullName(tensor.name);
    const auto found = expected_.find(name);
    if (found == expected_.end()) return TakeOther(tensor, name);
    if (!taken_.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is given twice"));
    }
    const StoredTensor& stored = found->second;
    LH_ASSIGN_OR_RETURN(const std::vector<float> values, Decode(tensor, stored.shape));
    std::vector<float>& parameter = weights_.parameters[static_cast<size_t>(stored.parameter)];
    parameter.resize(
        static_cast<size_t>(graph_.parameters[static_cast<size_t>(stored.parameter)].elements()));
    const auto target =
        absl::MakeSpan(parameter).subspan(static_cast<size_t>(stored.offset), values.size());
    if (stored.transposed) {
      Transpose(values, stored.shape[0], stored.shape[1], target);
    } else {
      std::copy(values.begin(), values.end(), target.begin());
    }
    return absl::OkStatus();
  }

  // Nothing is missing, and a head that is given beside a tied table is the table.
  absl::Status Finish() const {
    for (const auto& [name, stored] : expected_) {
      if (taken_.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("lacks the tensor '", name, "'"));
    }
    if (tied_head_.empty() || tied_head_ == weights_.parameters[0]) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("holds the tensor '", kHeadTensor,
                     "' with other numbers than the embedding, though 'tie_word_embeddings' says "
                     "that they are one"));
  }

 private:
  // GPT-2 as its authors' files name it lacks the prefix.
  std::string FullName(const std::string& name) const {
    const bool is_gpt2 = weights_.spec.graph.empty() && weights_.spec.family == "gpt2";
    if (!is_gpt2 || name == kHeadTensor || absl::StartsWith(name, kGpt2Prefix)) return name;
    return absl::StrCat(kGpt2Prefix, name);
  }

  absl::Status TakeOther(const TensorView& tensor, const std::string& name) {
    if (IsComputedTensor(tensor.name)) return absl::OkStatus();
    const bool is_tied_head =
        weights_.spec.graph.empty() && weights_.spec.tied && name == kHeadTensor;
    if (!is_tied_head) {
      return absl::InvalidArgumentError(
          absl::StrCat("holds the tensor '", tensor.name, "', which the configuration has not"));
    }
    if (!tied_head_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is given twice"));
    }
    LH_ASSIGN_OR_RETURN(tied_head_, Decode(tensor, graph_.parameters[0].shape));
    return absl::OkStatus();
  }

  static absl::StatusOr<std::vector<float>> Decode(const TensorView& tensor,
                                                   const std::vector<int64_t>& shape) {
    if (!IsFloatFormat(tensor.dtype) || tensor.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name, "' is ", tensor.dtype, " [", absl::StrJoin(tensor.shape, ", "),
          "], not F32, F16 or BF16 [", absl::StrJoin(shape, ", "), "] as the configuration says"));
    }
    std::vector<float> values(tensor.bytes.size() / (tensor.dtype == "F32" ? 4 : 2));
    DecodeFloats(tensor.dtype, tensor.bytes, absl::MakeSpan(values));
    const auto bad = std::find_if_not(values.begin(), values.end(),
                                      [](float value) { return std::isfinite(value); });
    if (bad == values.end()) return values;
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' holds ", *bad,
                                                   " as element ", bad - values.begin(),
                                                   ": the training that wrote it diverged"));
  }

  const model::Graph& graph_;
  ModelWeights& weights_;
  std::map<std::string, StoredTensor> expected_;
  std::set<std::string> taken_;
  std::vector<float> tied_head_;  // empty: not given
};

absl::StatusOr<model::ModelSpec> ReadGraphSpec(const std::string& path) {
  LH_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, model::kGraphBytesMax));
  auto spec = model::SpecOfGraph(json);
  if (!spec.ok()) return Annotate(spec.status(), path);
  return spec;
}

// Shortens the model to `context` positions; a table of positions loses its last rows.
absl::Status Shorten(int64_t context, const std::string& directory, ModelWeights& weights) {
  if (context == 0 || context == weights.spec.context) return absl::OkStatus();
  if (context < 0 || context > weights.spec.context || !weights.spec.graph.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory, ": its context is ", weights.spec.context, " and cannot become ", context));
  }
  weights.spec.context = context;
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    weights.parameters[p].resize(static_cast<size_t>(graph.parameters[p].elements()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<model::ModelSpec> ReadHuggingFaceSpec(const std::string& directory) {
  const std::string config_path = absl::StrCat(directory, "/", kConfigFile);
  const std::string graph_path = absl::StrCat(directory, "/", kGraphFile);
  const auto config = ReadFile(config_path, model::kHuggingFaceConfigBytesMax);
  const bool has_graph = FileSize(graph_path).ok();
  if (config.ok() && has_graph) {
    return absl::InvalidArgumentError(absl::StrCat(config_path, " and ", kGraphFile,
                                                   " are both there; remove the one that does not "
                                                   "belong to the weights"));
  }
  if (has_graph) return ReadGraphSpec(graph_path);
  if (!config.ok()) return config.status();
  auto spec = model::SpecOfHuggingFace(*config);
  if (!spec.ok()) return Annotate(spec.status(), config_path);
  return spec;
}

absl::StatusOr<ModelWeights> ImportHuggingFace(const std::string& directory, int64_t context) {
  ModelWeights weights;
  LH_ASSIGN_OR_RETURN(weights.spec, ReadHuggingFaceSpec(directory));
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  LH_ASSIGN_OR_RETURN(const WeightFiles files, FindWeightFiles(directory));
  const std::string where =
      absl::StrCat(directory, "/", files.index.empty() ? kWeightsFile : kIndexFile);
  // Before memory is taken for what a configuration says.
  if (files.bytes / kElementBytesMin < static_cast<uint64_t>(graph.ParameterCount())) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", files.bytes, " bytes are too few for the ",
                     graph.ParameterCount(), " parameters that the configuration says"));
  }
  Collector collector(graph, weights);
  LH_RETURN_IF_ERROR(ReadWeightFiles(
      files, [&collector](const TensorView& tensor) { return collector.Take(tensor); }));
  LH_RETURN_IF_ERROR(Annotate(collector.Finish(), where));
  LH_RETURN_IF_ERROR(Shorten(context, directory, weights));
  return weights;
}

}  // namespace longhaul::checkpoint
