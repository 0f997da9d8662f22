// What layer norm (kCentred) and RMS norm have in common on cards. For .cu files.
#ifndef LONGHAUL_COMPUTE_OPS_ROW_NORM_CUH_
#define LONGHAUL_COMPUTE_OPS_ROW_NORM_CUH_

#include "compute/backend/cuda/block_reduce.cuh"
#include "compute/backend/cuda/column_sums.cuh"
#include "compute/backend/cuda/held_row.cuh"

namespace longhaul::compute::cuda {

template <typename T>
struct NormForward {
  int64_t rows, width;
  Wide<T> epsilon;
  const T* input;
  const T* addend = nullptr;  // or input + addend is normalised
  T* sum = nullptr;           // gets that
  const T* weight;
  const T* bias = nullptr;  // kCentred only
  T* output;
  Wide<T>* means = nullptr;  // kCentred only
  Wide<T>* inverses;
};

// A block for each row.
template <typename T, typename Spread, bool kCentred>
__global__ void NormKernel(NormForward<T> norm) {
  using W = Wide<T>;
  using Values = W[Spread::kCount];
  const int64_t width = norm.width, first = int64_t{blockIdx.x} * width;
  const T* const x = (norm.addend != nullptr ? norm.sum : norm.input) + first;
  const auto load = [&](int64_t at, Values& values) { Load(x, at, width, values); };
  HeldRow<Spread, Values> row;
  row.Fill(width, [&](int64_t at, Values& values) {
    Load(norm.input + first, at, width, values);
    if (norm.addend == nullptr) return;
    Values addend;
    Load(norm.addend + first, at, width, addend);
    LONGHAUL_UNROLL
    for (int k = 0; k < Spread::kCount; ++k) values[k] = Narrow<T>(values[k] + addend[k]);
    Store(values, norm.sum + first, at, width);
  });
  W mean = 0;
  if constexpr (kCentred) {
    row.ForEach(width, load, [&](int64_t, const Values& values, int) {
      LONGHAUL_UNROLL
      for (int k = 0; k < Spread::kCount; ++k) mean += values[k];
    });
    mean = BlockReduce<Spread::kThreads>(mean, Sum{}) / static_cast<W>(width);
  }
  W squares = 0;
  row.ForEach(width, load, [&](int64_t at, const Values& values, int) {
    LONGHAUL_UNROLL
    for (int k = 0; k < Spread::kCount; ++k) {
      if (at + k < width) squares += (values[k] - mean) * (values[k] - mean);
    }
  });
  squares = BlockReduce<Spread::kThreads>(squares, Sum{}) / static_cast<W>(width);
  const W inverse = W(1) / sqrt(squares + norm.epsilon);
  row.ForEach(width, load, [&](int64_t at, const Values& values, int) {
    Values weights, biases = {}, results;
    Load(norm.weight, at, width, weights);
    if constexpr (kCentred) Load(norm.bias, at, width, biases);
    LONGHAUL_UNROLL
    for (int k = 0; k < Spread::kCount; ++k) {
      results[k] = (values[k] - mean) * inverse * weights[k] + biases[k];
    }
    Store(results, norm.output + first, at, width);
  });
  if (threadIdx.x != 0) return;
  if constexpr (kCentred) norm.means[blockIdx.x] = mean;
  norm.inverses[blockIdx.x] = inverse;
}

template <bool kCentred, typename T>
absl::Status Normalise(CudaBackend& backend, const char* name, const NormForward<T>& norm) {
  return WithSpread<T>(norm.width, [&](auto spread) {
    using Spread = decltype(spread);
    return Launch(backend, name, {static_cast<unsigned>(norm.rows), Spread::kThreads},
                  NormKernel<T, Spread, kCentred>, norm);
  });
}

template <typename T>
struct NormBackward {
  int64_t rows, width;
  const T* input;
  const T* weight;
  const Wide<T>* means = nullptr;  // kCentred only
  const Wide<T>* inverses;
  const T* output_gradient;
  const T* so_far = nullptr;  // or added to the input's gradient
  T* input_gradient;          // may be output_gradient or so_far
  Wide<T>* parts = nullptr;   // [blocks, width of the weight, and of the bias with kCentred]
};

// What backward knows of a pack.
template <typename Spread, typename W>
struct NormedPack {
  W normalised[Spread::kCount];
  W gradient[Spread::kCount];
};

// Sums over rows for one pack: `values` to memory, added to what is there unless `is_first`.
template <typename W, int kCount>
__device__ void AddToPart(const W (&values)[kCount], W* part, int64_t at, int64_t width,
                          bool is_first) {
  W sums[kCount] = {};
  if (!is_first) Load(part, at, width, sums);
  LONGHAUL_UNROLL
  for (int k = 0; k < kCount; ++k) sums[k] += values[k];
  Store(sums, part, at, width);
}

// Block b computes rows b, b + gridDim.x, ... and the sums of the parameters' gradients over them.
template <typename T, typename Spread, bool kCentred>
__global__ void NormBackwardKernel(NormBackward<T> norm) {
  using W = Wide<T>;
  using Values = W[Spread::kCount];
  using Pack = NormedPack<Spread, W>;
  const int64_t width = norm.width;
  W* const weight_part = norm.parts + blockIdx.x * (kCentred ? 2 * width : width);
  Values of_weight[Spread::kHeld] = {}, of_bias[Spread::kHeld] = {};
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    const int64_t first = row * width;
    const W mean = kCentred ? norm.means[row] : W(0), inverse = norm.inverses[row];
    const auto make = [&](int64_t at, Pack& pack) {
      Load(norm.input + first, at, width, pack.normalised);
      Load(norm.output_gradient + first, at, width, pack.gradient);
      LONGHAUL_UNROLL
      for (int k = 0; k < Spread::kCount; ++k) {
        pack.normalised[k] = (pack.normalised[k] - mean) * inverse;
      }
    };
    HeldRow<Spread, Pack> packs;
    packs.Fill(width, make);
    W sum = 0, sum_with_x = 0;
    packs.ForEach(width, make, [&](int64_t at, const Pack& pack, int number) {
      Values weights, products;
      Load(norm.weight, at, width, weights);
      LONGHAUL_UNROLL
      for (int k = 0; k < Spread::kCount; ++k) {
        const W scaled = pack.gradient[k] * weights[k];
        sum += scaled;
        sum_with_x += scaled * pack.normalised[k];
        products[k] = pack.gradient[k] * pack.normalised[k];
      }
      if (number < Spread::kHeld) {
        LONGHAUL_UNROLL
        for (int k = 0; k < Spread::kCount; ++k) {
          of_weight[number][k] += products[k];
          of_bias[number][k] += pack.gradient[k];
        }
        return;
      }
      AddToPart(products, weight_part, at, width, row == blockIdx.x);
      if constexpr (kCentred) {
        AddToPart(pack.gradient, weight_part + width, at, width, row == blockIdx.x);
      }
    });
    sum = kCentred ? BlockReduce<Spread::kThreads>(sum, Sum{}) / static_cast<W>(width) : W(0);
    sum_with_x = BlockReduce<Spread::kThreads>(sum_with_x, Sum{}) / static_cast<W>(width);
    packs.ForEach(width, make, [&](int64_t at, const Pack& pack, int) {
      Values weights, results = {};
      Load(norm.weight, at, width, weights);
      if (norm.so_far != nullptr) Load(norm.so_far + first, at, width, results);
      LONGHAUL_UNROLL
      for (int k = 0; k < Spread::kCount; ++k) {
        results[k] +=
            inverse * (pack.gradient[k] * weights[k] - sum - pack.normalised[k] * sum_with_x);
      }
      Store(results, norm.input_gradient + first, at, width);
    });
  }
  LONGHAUL_UNROLL
  for (int pack = 0; pack < Spread::kHeld; ++pack) {
    Store(of_weight[pack], weight_part, Spread::At(pack), width);
    if constexpr (kCentred) Store(of_bias[pack], weight_part + width, Spread::At(pack), width);
  }
}

inline constexpr int64_t kNormRowsOfBlock = 16;  // unless there are more blocks
inline constexpr int64_t kNormBlocksMax = 1024;  // than these

// Adds to the parameters' gradients. `norm.parts` is filled in here: the backend's scratch memory.
template <bool kCentred, typename T>
absl::Status NormaliseBackward(CudaBackend& backend, const char* name, NormBackward<T> norm,
                               Wide<T>* weight_gradient, Wide<T>* bias_gradient) {
  const int64_t blocks = std::clamp(norm.rows / kNormRowsOfBlock, int64_t{1}, kNormBlocksMax);
  const int64_t columns = kCentred ? 2 * norm.width : norm.width;
  LH_ASSIGN_OR_RETURN(norm.parts, backend.ScratchOf<Wide<T>>(blocks * columns));
  LH_RETURN_IF_ERROR(WithSpread<T>(norm.width, [&](auto spread) {
    using Spread = decltype(spread);
    return Launch(backend, name, {static_cast<unsigned>(blocks), Spread::kThreads},
                  NormBackwardKernel<T, Spread, kCentred>, norm);
  }));
  return AddParts<Wide<T>>(backend, name, blocks, columns, norm.parts,
                           {weight_gradient, norm.width, bias_gradient});
}

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_OPS_ROW_NORM_CUH_
