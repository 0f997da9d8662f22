#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/pack.cuh"
#include "compute/backend/cuda/tensor_list.cuh"
#include "compute/optim/sum_of_squares.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kElementsOfBlock = 65536;
constexpr int kTensors = 128;  // that a launch takes

template <typename T>
struct Item {
  const T* values;
  int64_t elements;
};
template <typename T>
using List = cuda::TensorList<Item<T>, kTensors>;

template <typename T>
int64_t BlocksOf(const Item<T>& item) {
  return (item.elements + kElementsOfBlock - 1) / kElementsOfBlock;
}

// partial [blocks]: in double, thread by thread over its packs, then over the threads.
template <typename T>
__global__ void PartialSquaresKernel(const __grid_constant__ List<T> list, double* partial) {
  constexpr int kCount = cuda::kPack<T>;
  const auto [tensor, block] = cuda::ThisBlock(list);
  const Item<T>& item = list.items[tensor];
  const int64_t begin = block * kElementsOfBlock;
  const int64_t end =
      begin + kElementsOfBlock < item.elements ? begin + kElementsOfBlock : item.elements;
  double sum = 0;
  for (int64_t at = begin + threadIdx.x * kCount; at < end; at += kThreads * kCount) {
    Wide<T> values[kCount];
    cuda::Load(item.values, at, end, values);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) sum += double{values[k]} * double{values[k]};
  }
  sum = cuda::BlockReduce<kThreads>(sum, cuda::Sum{});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Block i: sums[i], of the partial sums of tensor i.
template <typename T>
__global__ void AddSquaresKernel(const __grid_constant__ List<T> list, const double* partial,
                                 double* sums) {
  double sum = 0;
  const int end = list.first_block[blockIdx.x + 1];
  for (int i = list.first_block[blockIdx.x] + static_cast<int>(threadIdx.x); i < end;
       i += kThreads) {
    sum += partial[i];
  }
  sum = cuda::BlockReduce<kThreads>(sum, cuda::Sum{});
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::SumsOfSquares(absl::Span<const absl::Span<const T>> tensors,
                                           double* sums) const {
  constexpr const char* kOp = "sums of squares";
  static_assert(sizeof(List<T>) + 2 * sizeof(double*) <= cuda::kArgumentBytesMax);
  std::vector<Item<T>> items;
  items.reserve(tensors.size());
  int64_t blocks_max = 0;
  for (const absl::Span<const T> values : tensors) {
    items.push_back({values.data(), static_cast<int64_t>(values.size())});
    blocks_max += BlocksOf(items.back());
  }
  const int64_t count = static_cast<int64_t>(items.size());
  LH_ASSIGN_OR_RETURN(double* const on_device,
                      backend_.template ScratchOf<double>(count + blocks_max));
  double* const partial = on_device + count;  // of one list at a time
  int64_t done = 0;
  LH_RETURN_IF_ERROR((cuda::ForLists<kTensors, Item<T>>(items, BlocksOf<T>, [&](const auto& list) {
    const int blocks = list.first_block[list.count];
    if (blocks > 0) {
      LH_RETURN_IF_ERROR(cuda::Launch(backend_, kOp, {static_cast<unsigned>(blocks), kThreads},
                                      PartialSquaresKernel<T>, list, partial));
    }
    LH_RETURN_IF_ERROR(cuda::Launch(backend_, kOp, {static_cast<unsigned>(list.count), kThreads},
                                    AddSquaresKernel<T>, list, partial, on_device + done));
    done += list.count;
    return absl::OkStatus();
  })));
  return backend_.Return(on_device, sums, count);
}

template absl::Status CudaKernels<float>::SumsOfSquares(absl::Span<const absl::Span<const float>>,
                                                        double*) const;
template absl::Status CudaKernels<double>::SumsOfSquares(absl::Span<const absl::Span<const double>>,
                                                         double*) const;
template absl::Status CudaKernels<BFloat16>::SumsOfSquares(
    absl::Span<const absl::Span<const BFloat16>>, double*) const;

}  // namespace longhaul::compute
