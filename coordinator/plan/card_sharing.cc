#include "coordinator/plan/card_sharing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/card_memory.h"

namespace longhaul::coordinator {
namespace {

// What the workers of a card have together; as much as they state where its size is not known.
double RoomOf(const std::vector<NodeProfile*>& workers, double stated) {
  int64_t card = 0;
  for (const NodeProfile* worker : workers) card = std::max(card, worker->device_memory_bytes);
  if (card == 0) return stated;
  const double margin = static_cast<double>(CardMemoryMargin(card));
  return std::max(0.0, static_cast<double>(card) - margin * static_cast<double>(workers.size()));
}

}  // namespace

void ShareCardMemory(std::vector<NodeProfile>& nodes) {
  std::map<std::string, std::vector<NodeProfile*>> cards;
  for (NodeProfile& node : nodes) {
    if (!node.device_uuid.empty()) cards[node.device_uuid].push_back(&node);
  }
  for (const auto& [uuid, workers] : cards) {
    if (workers.size() == 1) continue;
    double stated = 0;
    for (const NodeProfile* worker : workers) stated += static_cast<double>(worker->memory_bytes);
    const double room = RoomOf(workers, stated);
    if (stated <= room) continue;
    for (NodeProfile* worker : workers) {
      const double part = static_cast<double>(worker->memory_bytes) / stated;
      worker->memory_bytes = static_cast<int64_t>(room * part);
    }
  }
}

}  // namespace longhaul::coordinator
