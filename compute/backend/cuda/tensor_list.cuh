// Many tensors in one launch: their addresses are arguments of the kernel, so that nothing is
// copied first. For .cu files.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_TENSOR_LIST_CUH_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_TENSOR_LIST_CUH_

#include <cstdint>

#include "absl/types/span.h"
#include "compute/backend/cuda/launch.h"

namespace longhaul::compute::cuda {

inline constexpr size_t kArgumentBytesMax = 4096;  // that every card and driver takes

// Item says what one tensor is; a block works on part of one of them.
template <typename Item, int kMax>
struct TensorList {
  int count;
  int first_block[kMax + 1];  // of each tensor, and the number of all
  Item items[kMax];
};

// Which tensor the running block works on, and which of its blocks it is.
struct BlockOfTensor {
  int tensor;
  int64_t block;
};
template <typename Item, int kMax>
__device__ BlockOfTensor ThisBlock(const TensorList<Item, kMax>& list) {
  const int block = static_cast<int>(blockIdx.x);
  int from = 0, to = list.count - 1;  // the tensor is one of these
  while (from < to) {
    const int middle = (from + to + 1) / 2;
    if (list.first_block[middle] <= block) {
      from = middle;
    } else {
      to = middle - 1;
    }
  }
  return {from, int64_t{block} - list.first_block[from]};
}

// Calls launch(list) for `items` in lists of at most kMax; blocks_of(item) says how many blocks a
// tensor takes. Lists may have no blocks.
template <int kMax, typename Item, typename BlocksOf, typename Launch>
absl::Status ForLists(absl::Span<const Item> items, const BlocksOf& blocks_of,
                      const Launch& launch) {
  for (size_t begin = 0; begin < items.size(); begin += kMax) {
    TensorList<Item, kMax> list{};
    for (const Item& item : items.subspan(begin, kMax)) {
      list.items[list.count] = item;
      list.first_block[list.count + 1] =
          list.first_block[list.count] + static_cast<int>(blocks_of(item));
      ++list.count;
    }
    const absl::Status status = launch(list);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_TENSOR_LIST_CUH_
