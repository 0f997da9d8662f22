#include "checkpoint/initial_shards.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace longhaul::checkpoint {
namespace {

constexpr size_t kShardElements = size_t{16} << 20;  // 64 MiB of weights

}  // namespace

absl::StatusOr<Manifest> StoreInitialShards(
    const std::string& run, const ModelWeights& weights,
    absl::FunctionRef<absl::Status(const EncodedShard&)> store) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(weights.spec));
  Manifest manifest;
  manifest.run = run;
  size_t next = 0;
  while (next < weights.parameters.size()) {
    const size_t first = next;
    size_t elements = 0, largest = 0;
    do {
      elements += weights.parameters[next].size();
      largest = std::max(largest, weights.parameters[next].size());
      ++next;
    } while (next < weights.parameters.size() &&
             elements + weights.parameters[next].size() <= kShardElements);
    const std::vector<float> zeros(largest);
    std::vector<ParameterState> states;
    for (size_t p = first; p < next; ++p) {
      const std::vector<float>& values = weights.parameters[p];
      const auto moment = absl::MakeConstSpan(zeros).subspan(0, values.size());
      states.push_back({static_cast<int>(p), values, moment, moment});
    }
    EncodedShard encoded = EncodeShard(graph, states);
    LH_RETURN_IF_ERROR(store(encoded));
    manifest.shards.push_back(std::move(encoded.shard));
  }
  return manifest;
}

}  // namespace longhaul::checkpoint
