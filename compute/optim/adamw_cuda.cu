#include <vector>

#include "compute/backend/cuda/pack.cuh"
#include "compute/backend/cuda/tensor_list.cuh"
#include "compute/optim/adamw.h"
#include "compute/optim/adamw_factors.h"

namespace longhaul::compute {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kElementsOfBlock = 8192;
constexpr int kTensors = 48;  // that a launch takes

template <typename T>
struct Item {
  const Wide<T>* gradient;
  Wide<T>* weights;
  Wide<T>* first_moment;
  Wide<T>* second_moment;
  T* working;  // or null
  int64_t elements;
  bool decays;
};

template <typename T>
struct Arguments {
  AdamWFactors<Wide<T>> factors;
  Wide<T> decay;  // of the tensors that decay
  cuda::TensorList<Item<T>, kTensors> list;
};

template <typename T>
__global__ void AdamWKernel(const __grid_constant__ Arguments<T> arguments) {
  using W = Wide<T>;
  constexpr int kCount = cuda::kPack<W>;
  const auto [tensor, block] = cuda::ThisBlock(arguments.list);
  const Item<T>& item = arguments.list.items[tensor];
  const AdamWFactors<W>& f = arguments.factors;
  const W decay = item.decays ? arguments.decay : W(1);
  const int64_t begin = block * kElementsOfBlock;
  const int64_t end =
      begin + kElementsOfBlock < item.elements ? begin + kElementsOfBlock : item.elements;
  for (int64_t at = begin + threadIdx.x * kCount; at < end; at += kThreads * kCount) {
    W gradients[kCount], weights[kCount], first[kCount], second[kCount];
    cuda::Load(item.gradient, at, end, gradients);
    cuda::Load(item.weights, at, end, weights);
    cuda::Load(item.first_moment, at, end, first);
    cuda::Load(item.second_moment, at, end, second);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const W g = gradients[k] * f.gradient_scale;
      first[k] += f.one_minus_beta1 * (g - first[k]);
      second[k] = second[k] * f.beta2 + f.one_minus_beta2 * g * g;
      const W root = sqrt(second[k]) / f.root_bias_correction2;
      weights[k] = weights[k] * decay - f.step_size * (first[k] / (root + f.epsilon));
    }
    cuda::Store(first, item.first_moment, at, end);
    cuda::Store(second, item.second_moment, at, end);
    cuda::Store(weights, item.weights, at, end);
    if (item.working != nullptr) cuda::Store(weights, item.working, at, end);
  }
}

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::AdamW(const AdamWStep& step,
                                   absl::Span<const AdamWTensor<T>> tensors) const {
  static_assert(sizeof(Arguments<T>) <= cuda::kArgumentBytesMax);
  std::vector<Item<T>> items;
  items.reserve(tensors.size());
  for (const AdamWTensor<T>& tensor : tensors) {
    items.push_back({tensor.gradient.data(), tensor.weights.data(), tensor.first_moment.data(),
                     tensor.second_moment.data(),
                     tensor.working.empty() ? nullptr : tensor.working.data(),
                     static_cast<int64_t>(tensor.weights.size()), tensor.decays});
  }
  Arguments<T> arguments;
  arguments.factors = FactorsOf<Wide<T>>(step);
  arguments.decay = arguments.factors.decay;
  const auto blocks_of = [](const Item<T>& item) {
    return (item.elements + kElementsOfBlock - 1) / kElementsOfBlock;
  };
  return cuda::ForLists<kTensors, Item<T>>(items, blocks_of, [&](const auto& list) {
    const int blocks = list.first_block[list.count];
    if (blocks == 0) return absl::OkStatus();
    arguments.list = list;
    return cuda::Launch(backend_, "adamw", {static_cast<unsigned>(blocks), kThreads},
                        AdamWKernel<T>, arguments);
  });
}

template absl::Status CudaKernels<float>::AdamW(const AdamWStep&,
                                                absl::Span<const AdamWTensor<float>>) const;
template absl::Status CudaKernels<double>::AdamW(const AdamWStep&,
                                                 absl::Span<const AdamWTensor<double>>) const;
template absl::Status CudaKernels<BFloat16>::AdamW(const AdamWStep&,
                                                   absl::Span<const AdamWTensor<BFloat16>>) const;

}  // namespace longhaul::compute
