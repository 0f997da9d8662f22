#include <type_traits>

#include "base/status_macros.h"
#include "compute/backend/cuda/column_sums.cuh"
#include "compute/backend/cuda/lt_product.h"
#include "compute/backend/cuda/matrix_product.h"
#include "compute/ops/linear.h"

namespace longhaul::compute {
namespace {

template <typename T>
struct AddBiasAt {
  static constexpr int kCount = cuda::kPack<T>;
  int64_t out, pitch;
  const T* bias;
  T* output;
  __device__ void operator()(int64_t row, int pack) const {
    const int64_t at = int64_t{pack} * kCount;
    Wide<T> values[kCount], biases[kCount];
    cuda::Load(output + row * pitch, at, out, values);
    cuda::Load(bias, at, out, biases);
    LONGHAUL_UNROLL
    for (int k = 0; k < kCount; ++k) values[k] += biases[k];
    cuda::Store(values, output + row * pitch, at, out);
  }
};

}  // namespace

template <typename T>
absl::Status CudaKernels<T>::LinearForward(const LinearShape& shape, absl::Span<const T> input,
                                           absl::Span<const T> weight, absl::Span<const T> bias,
                                           absl::Span<T> output) const {
  if constexpr (!std::is_same_v<T, double>) {
    if (!bias.empty() && shape.pitch() == shape.out) {
      LH_ASSIGN_OR_RETURN(const bool done,
                          backend_.Run(cuda::LtProduct<T>{.rows = shape.rows,
                                                          .columns = shape.out,
                                                          .inner = shape.in,
                                                          .a = {input.data(), false},
                                                          .b = {weight.data(), true},
                                                          .c = output.data(),
                                                          .epilogue = cuda::Epilogue::kBias,
                                                          .bias = bias.data()}));
      if (done) return absl::OkStatus();
    }
  }
  LH_RETURN_IF_ERROR(cuda::Multiply(backend_, cuda::Product<T, T>{.rows = shape.rows,
                                                                  .columns = shape.out,
                                                                  .inner = shape.in,
                                                                  .a = {input.data(), false},
                                                                  .b = {weight.data(), true},
                                                                  .c = output.data(),
                                                                  .c_pitch = shape.pitch()}));
  if (bias.empty()) return absl::OkStatus();
  using AddBias = AddBiasAt<T>;
  return cuda::ForEachOfRows(backend_, "linear", shape.rows, cuda::PacksOf<T>(shape.out),
                             AddBias{shape.out, shape.pitch(), bias.data(), output.data()});
}

template <typename T>
absl::Status CudaKernels<T>::LinearBackward(const LinearShape& shape, absl::Span<const T> input,
                                            absl::Span<const T> weight,
                                            absl::Span<const T> output_gradient,
                                            absl::Span<T> input_gradient,
                                            absl::Span<Wide<T>> weight_gradient,
                                            absl::Span<Wide<T>> bias_gradient) const {
  if (!input_gradient.empty()) {
    LH_RETURN_IF_ERROR(
        cuda::Multiply(backend_, cuda::Product<T, T>{.rows = shape.rows,
                                                     .columns = shape.in,
                                                     .inner = shape.out,
                                                     .a = {output_gradient.data(), false},
                                                     .b = {weight.data(), false},
                                                     .c = input_gradient.data(),
                                                     .a_pitch = shape.pitch()}));
  }
  LH_RETURN_IF_ERROR(
      cuda::Multiply(backend_, cuda::Product<T, Wide<T>>{.rows = shape.out,
                                                         .columns = shape.in,
                                                         .inner = shape.rows,
                                                         .a = {output_gradient.data(), true},
                                                         .b = {input.data(), false},
                                                         .c = weight_gradient.data(),
                                                         .add = true,
                                                         .a_pitch = shape.pitch()}));
  if (bias_gradient.empty()) return absl::OkStatus();
  return cuda::AddColumnSums<T>(backend_, "linear backward",
                                {shape.rows, shape.out, shape.pitch(), output_gradient.data()},
                                bias_gradient.data());
}

#define LONGHAUL_INSTANTIATE(T)                                                                 \
  template absl::Status CudaKernels<T>::LinearForward(const LinearShape&, absl::Span<const T>,  \
                                                      absl::Span<const T>, absl::Span<const T>, \
                                                      absl::Span<T>) const;                     \
  template absl::Status CudaKernels<T>::LinearBackward(                                         \
      const LinearShape&, absl::Span<const T>, absl::Span<const T>, absl::Span<const T>,        \
      absl::Span<T>, absl::Span<Wide<T>>, absl::Span<Wide<T>>) const;
LONGHAUL_INSTANTIATE(float)
LONGHAUL_INSTANTIATE(double)
LONGHAUL_INSTANTIATE(BFloat16)

}  // namespace longhaul::compute
