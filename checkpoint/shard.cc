#include "checkpoint/shard.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "checkpoint/safetensors.h"

namespace longhaul::checkpoint {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kFormat[] = "longhaul.shard.1";
// Behind a parameter's name, in the order of the spans of ParameterState.
constexpr std::array<absl::string_view, 3> kSuffixes = {"", ".first_moment", ".second_moment"};

template <typename State>
auto Spans(const State& state) {
  return std::array{state.weights, state.first_moment, state.second_moment};
}

const model::Parameter& ParameterAt(const model::Graph& graph, int index) {
  LH_CHECK(index >= 0 && index < static_cast<int>(graph.parameters.size()), "parameter ", index);
  return graph.parameters[static_cast<size_t>(index)];
}

// A shard's tensors by name, each checked against the graph.
using Tensors = absl::flat_hash_map<std::string, absl::string_view>;

absl::StatusOr<Tensors> CheckTensors(const model::Graph& graph, const Shard& shard,
                                     const SafetensorsFile& file) {
  if (const auto found = file.metadata.find(kFormatKey);
      found == file.metadata.end() || found->second != kFormat) {
    return absl::DataLossError(absl::StrCat("is not of the format ", kFormat));
  }
  if (file.tensors.size() != kSuffixes.size() * shard.parameters.size()) {
    return absl::DataLossError(absl::StrCat("has ", file.tensors.size(), " tensors instead of ",
                                            kSuffixes.size(), " for each of ",
                                            shard.parameters.size(), " parameters"));
  }
  absl::flat_hash_map<absl::string_view, const TensorView*> by_name;
  for (const TensorView& tensor : file.tensors) by_name[tensor.name] = &tensor;
  absl::flat_hash_map<absl::string_view, const model::Parameter*> parameters;
  for (const model::Parameter& parameter : graph.parameters)
    parameters[parameter.name] = &parameter;
  Tensors tensors;
  for (const std::string& name : shard.parameters) {
    const auto parameter = parameters.find(name);
    if (parameter == parameters.end()) {
      return absl::DataLossError(absl::StrCat("holds '", name, "', which the model does not have"));
    }
    for (const absl::string_view suffix : kSuffixes) {
      const std::string tensor_name = absl::StrCat(name, suffix);
      const auto tensor = by_name.find(tensor_name);
      if (tensor == by_name.end()) {
        return absl::DataLossError(absl::StrCat("lacks the tensor '", tensor_name, "'"));
      }
      if (tensor->second->dtype != "F32" || tensor->second->shape != parameter->second->shape) {
        return absl::DataLossError(
            absl::StrCat("tensor '", tensor_name, "' has not the model's shape, or is not F32"));
      }
      tensors[tensor_name] = tensor->second->bytes;
    }
  }
  return tensors;
}

absl::StatusOr<int> Decode(const model::Graph& graph, const Shard& shard, absl::string_view bytes,
                           absl::Span<const MutableParameterState> wanted) {
  if (bytes.size() != shard.bytes || Sha256Hex(bytes) != shard.sha256) {
    return absl::DataLossError("its bytes do not have its hash");
  }
  LH_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  LH_ASSIGN_OR_RETURN(const Tensors tensors, CheckTensors(graph, shard, file));
  int copied = 0;
  for (const MutableParameterState& state : wanted) {
    const model::Parameter& parameter = ParameterAt(graph, state.index);
    if (!tensors.contains(parameter.name)) continue;
    const auto spans = Spans(state);
    for (size_t i = 0; i < spans.size(); ++i) {
      if (i > 0 && spans[i].empty()) continue;  // a moment that nobody wants
      const absl::string_view from = tensors.at(absl::StrCat(parameter.name, kSuffixes[i]));
      LH_CHECK(spans[i].size() * sizeof(float) == from.size(), parameter.name);
      std::memcpy(spans[i].data(), from.data(), from.size());
    }
    ++copied;
  }
  return copied;
}

}  // namespace

EncodedShard EncodeShard(const model::Graph& graph, absl::Span<const ParameterState> states) {
  EncodedShard encoded;
  std::vector<TensorView> tensors;
  for (const ParameterState& state : states) {
    const model::Parameter& parameter = ParameterAt(graph, state.index);
    encoded.shard.parameters.push_back(parameter.name);
    const auto spans = Spans(state);
    for (size_t i = 0; i < spans.size(); ++i) {
      LH_CHECK(static_cast<int64_t>(spans[i].size()) == parameter.elements(), parameter.name);
      tensors.push_back({absl::StrCat(parameter.name, kSuffixes[i]), "F32", parameter.shape,
                         absl::string_view(reinterpret_cast<const char*>(spans[i].data()),
                                           spans[i].size() * sizeof(float))});
    }
  }
  encoded.bytes = WriteSafetensors(tensors, {{kFormatKey, kFormat}});
  encoded.shard.sha256 = Sha256Hex(encoded.bytes);
  encoded.shard.bytes = encoded.bytes.size();
  return encoded;
}

absl::StatusOr<int> DecodeShard(const model::Graph& graph, const Shard& shard,
                                absl::string_view bytes,
                                absl::Span<const MutableParameterState> wanted) {
  auto copied = Decode(graph, shard, bytes, wanted);
  if (!copied.ok()) return Annotate(copied.status(), absl::StrCat("shard ", shard.sha256));
  return copied;
}

}  // namespace longhaul::checkpoint
