// Packs tensors with known lifetimes into one region, so that those never needed together share
// memory.
#ifndef LONGHAUL_MODEL_LIVENESS_H_
#define LONGHAUL_MODEL_LIVENESS_H_

#include <cstdint>
#include <vector>

namespace longhaul::model {

// A tensor needed at the times first..last, both included.
struct LiveTensor {
  int64_t elements = 0;
  int first = 0;
  int last = 0;
};

struct Packing {
  std::vector<int64_t> offsets;  // by tensor; multiples of kAlignElements
  int64_t elements = 0;          // size of the region
};

// First fit in order of first use, then of position in the list: each tensor gets the lowest offset
// at which it overlaps no tensor that is live at the same time.
Packing PackByLiveness(const std::vector<LiveTensor>& tensors);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_LIVENESS_H_
