#include "worker/host/stage_state.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "worker/host/host_copies.h"

namespace longhaul::worker {
namespace {

bool Holds(const model::Graph& graph, const checkpoint::Shard& shard, int parameter) {
  const std::string& name = graph.parameters[parameter].name;
  return std::find(shard.parameters.begin(), shard.parameters.end(), name) !=
         shard.parameters.end();
}

// What the stage has of the shard's parameters, in host memory.
std::vector<checkpoint::MutableParameterState> WantedOf(const model::Graph& graph,
                                                        const checkpoint::Shard& shard,
                                                        compute::Stage<float>& stage,
                                                        HostCopies& copies) {
  std::vector<checkpoint::MutableParameterState> wanted;
  for (const compute::StageParameter<float>& parameter : stage.parameters()) {
    if (!Holds(graph, shard, parameter.index)) continue;
    wanted.push_back({parameter.index, copies.Of(parameter.weights),
                      copies.Of(parameter.first_moment), copies.Of(parameter.second_moment)});
  }
  return wanted;
}

// Copies what is wanted from this node's copy. NotFound: there is none.
absl::Status LoadLocal(const model::Graph& graph, const checkpoint::Shard& shard,
                       const ShardSources& sources,
                       const std::vector<checkpoint::MutableParameterState>& wanted) {
  LH_ASSIGN_OR_RETURN(const std::string bytes, sources.local->Get(shard.sha256));
  return checkpoint::DecodeShard(graph, shard, bytes, wanted).status();
}

// What a shard file of these parameters may have at most; its true length comes from outside.
uint64_t ShardBytesMax(const model::Graph& graph, const checkpoint::Shard& shard) {
  constexpr uint64_t kTensorsEach = 3;            // weights and two moments
  constexpr uint64_t kDescriptionBytesMax = 512;  // of one tensor, besides its name
  uint64_t bytes = kDescriptionBytesMax;
  for (const model::Parameter& parameter : graph.parameters) {
    if (std::find(shard.parameters.begin(), shard.parameters.end(), parameter.name) ==
        shard.parameters.end()) {
      continue;
    }
    bytes += kTensorsEach * (sizeof(float) * static_cast<uint64_t>(parameter.elements()) +
                             parameter.name.size() + kDescriptionBytesMax);
  }
  return bytes;
}

// Takes the shard from the coordinator; `manifest` is the checkpoint that it is of.
absl::Status LoadRemote(const model::Graph& graph, const checkpoint::Manifest& manifest,
                        const checkpoint::Shard& shard, const ShardSources& sources,
                        const std::vector<checkpoint::MutableParameterState>& wanted) {
  const uint64_t bytes_max = ShardBytesMax(graph, shard);
  if (shard.bytes > bytes_max) {
    return absl::DataLossError(absl::StrCat("shard ", shard.sha256, " is said to have ",
                                            shard.bytes, " bytes; its parameters need at most ",
                                            bytes_max));
  }
  const Patience patience = sources.patience();
  LH_ASSIGN_OR_RETURN(const std::string bytes, WhileUnavailable(patience, [&] {
                        return sources.remote->FetchShard(shard.sha256, shard.bytes,
                                                          patience.deadline);
                      }));
  LH_RETURN_IF_ERROR(Annotate(checkpoint::DecodeShard(graph, shard, bytes, wanted).status(),
                              absl::StrCat("shard ", shard.sha256, " from the coordinator")));
  sources.note(absl::StrCat("fetched shard ", shard.sha256, " (", bytes.size(),
                            " bytes) from the coordinator"));
  const absl::Status kept = sources.local->PutFetched(manifest, shard.sha256, bytes);
  if (!kept.ok()) {
    sources.note(absl::StrCat("the fetched shard is not kept on this node: ", kept.message()));
  }
  return absl::OkStatus();
}

// From this node or from the coordinator.
absl::Status LoadShard(const model::Graph& graph, const checkpoint::Manifest& manifest,
                       const checkpoint::Shard& shard, const ShardSources& sources,
                       const std::vector<checkpoint::MutableParameterState>& wanted,
                       std::string& damaged_shard) {
  LH_RETURN_IF_ERROR(sources.goes_on());
  const absl::Status local = LoadLocal(graph, shard, sources, wanted);
  if (local.ok()) return absl::OkStatus();
  if (!absl::IsNotFound(local)) {
    sources.note(absl::StrCat("this node's copy of a shard is no good, fetching another: ",
                              local.message()));
  }
  LH_RETURN_IF_ERROR(sources.goes_on());
  const absl::Status remote = LoadRemote(graph, manifest, shard, sources, wanted);
  if (absl::IsDataLoss(remote) || absl::IsNotFound(remote)) damaged_shard = shard.sha256;
  return remote;
}

}  // namespace

absl::StatusOr<checkpoint::EncodedShard> SaveStage(const model::Graph& graph,
                                                   const std::vector<int>& owned,
                                                   compute::Stage<float>& stage) {
  HostCopies copies(stage.backend());
  std::vector<checkpoint::ParameterState> states;
  for (const compute::StageParameter<float>& parameter : stage.parameters()) {
    if (!std::binary_search(owned.begin(), owned.end(), parameter.index)) continue;
    states.push_back({parameter.index, copies.Of(parameter.weights),
                      copies.Of(parameter.first_moment), copies.Of(parameter.second_moment)});
  }
  LH_CHECK(states.size() == owned.size(), "a stage saves only what it holds");
  LH_RETURN_IF_ERROR(copies.Read());
  return checkpoint::EncodeShard(graph, states);
}

absl::Status LoadStage(const model::Graph& graph, const checkpoint::Manifest& manifest,
                       compute::Stage<float>& stage, const ShardSources& sources,
                       std::string& damaged_shard) {
  LH_RETURN_IF_ERROR(checkpoint::ValidateCoverage(manifest, graph));
  for (const checkpoint::Shard& shard : manifest.shards) {
    HostCopies copies(stage.backend());
    const auto wanted = WantedOf(graph, shard, stage, copies);
    if (wanted.empty()) continue;
    LH_RETURN_IF_ERROR(LoadShard(graph, manifest, shard, sources, wanted, damaged_shard));
    LH_RETURN_IF_ERROR(copies.Write());
  }
  LH_RETURN_IF_ERROR(stage.WeightsChanged());
  return sources.goes_on();
}

}  // namespace longhaul::worker
