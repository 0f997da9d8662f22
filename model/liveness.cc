#include "model/liveness.h"

#include <algorithm>
#include <numeric>

#include "model/buffer_plan.h"

namespace longhaul::model {
namespace {

struct Placed {
  int64_t begin = 0, end = 0;
  int last = 0;
};

// The lowest gap of `elements` among `live`, which is sorted by begin and has no overlaps.
int64_t LowestGap(const std::vector<Placed>& live, int64_t elements) {
  int64_t offset = 0;
  for (const Placed& placed : live) {
    if (placed.begin - offset >= elements) break;
    offset = placed.end;
  }
  return offset;
}

}  // namespace

Packing PackByLiveness(const std::vector<LiveTensor>& tensors) {
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return tensors[a].first < tensors[b].first; });

  Packing packing;
  packing.offsets.resize(tensors.size());
  std::vector<Placed> live;
  for (int index : order) {
    const LiveTensor& tensor = tensors[index];
    std::erase_if(live, [&](const Placed& placed) { return placed.last < tensor.first; });
    const int64_t size = Padded(tensor.elements);
    const int64_t offset = LowestGap(live, size);
    const Placed placed{offset, offset + size, tensor.last};
    live.insert(
        std::upper_bound(live.begin(), live.end(), placed,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        placed);
    packing.offsets[index] = offset;
    packing.elements = std::max(packing.elements, placed.end);
  }
  return packing;
}

}  // namespace longhaul::model
