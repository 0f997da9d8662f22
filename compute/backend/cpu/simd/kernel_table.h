// Builds the kernels for one instruction set. Included by kernels_*.cc only, which define
// LONGHAUL_INSTRUCTION_SET (a namespace), LONGHAUL_REGISTER_BYTES and LONGHAUL_FUSED_MULTIPLY_ADD
// and are compiled with that set's flags. Nothing included here may define inline functions outside
// that namespace: the linker could keep this build's copy of them for code that runs on older
// processors.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNEL_TABLE_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNEL_TABLE_H_

#include "compute/backend/cpu/simd/attention_backward_kernel.h"
#include "compute/backend/cpu/simd/attention_forward_kernel.h"
#include "compute/backend/cpu/simd/column_kernels.h"
#include "compute/backend/cpu/simd/dropout_kernel.h"
#include "compute/backend/cpu/simd/elementwise_kernels.h"
#include "compute/backend/cpu/simd/instruction_sets.h"
#include "compute/backend/cpu/simd/row_kernels.h"
#if LONGHAUL_FUSED_MULTIPLY_ADD
#include "compute/backend/cpu/simd/product_kernel.h"
#endif

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

template <typename T>
constexpr auto Products() -> void (*)(const ProductCall<T>&) {
#if LONGHAUL_FUSED_MULTIPLY_ADD
  return MultiplyMatrices<T>;
#else
  return nullptr;
#endif
}

template <typename T>
inline constexpr Kernels<T> kKernels = {
    .add = AddRow<T>,
    .scale = ScaleRow<T>,
    .max = MaxOfRow<T>,
    .gelu = Gelu<T>,
    .gelu_backward = GeluGradient<T>,
    .swiglu = SwiGlu<T>,
    .swiglu_backward = SwiGluGradient<T>,
    .rotate = Rotate<T>,
    .drop = Drop<T>,
    .sum_of_exponentials = SumOfExponentials<T>,
    .exponentials = Exponentials<T>,
    .attend = Attend<T>,
    .attend_backward = AttendBackward<T>,
    .layer_norm = LayerNormRow<T>,
    .layer_norm_backward = LayerNormRowGradient<T>,
    .rms_norm = RmsNormRow<T>,
    .rms_norm_backward = RmsNormRowGradient<T>,
    .add_column_sums = AddColumnSums<T>,
    .add_normalized_column_sums = AddNormalizedColumnSums<T>,
    .sum_of_squares = SumOfSquaresOfRow<T>,
    .adamw = AdamWRow<T>,
    .multiply = Products<T>(),
};

InstructionSet Set() {
#define LONGHAUL_QUOTE_INNER(name) #name
#define LONGHAUL_QUOTE(name) LONGHAUL_QUOTE_INNER(name)
  return {LONGHAUL_QUOTE(LONGHAUL_INSTRUCTION_SET), &kKernels<float>, &kKernels<double>};
}

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_KERNEL_TABLE_H_
