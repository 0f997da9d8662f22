// a * b + c in registers, rounded once where the instruction set can. Included through
// kernel_table.h.
#ifndef LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_MULTIPLY_ADD_H_
#define LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_MULTIPLY_ADD_H_

#if LONGHAUL_FUSED_MULTIPLY_ADD
#include <immintrin.h>
#endif

#include "compute/backend/cpu/simd/lanes.h"

namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET {

#if LONGHAUL_FUSED_MULTIPLY_ADD && LONGHAUL_REGISTER_BYTES == 64
inline Register<float> MultiplyAdd(Register<float> a, Register<float> b, Register<float> c) {
  return (Register<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
inline Register<double> MultiplyAdd(Register<double> a, Register<double> b, Register<double> c) {
  return (Register<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif LONGHAUL_FUSED_MULTIPLY_ADD
inline Register<float> MultiplyAdd(Register<float> a, Register<float> b, Register<float> c) {
  return (Register<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline Register<double> MultiplyAdd(Register<double> a, Register<double> b, Register<double> c) {
  return (Register<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#else
template <typename R>
inline R MultiplyAdd(R a, R b, R c) {
  return a * b + c;
}
#endif

}  // namespace longhaul::compute::LONGHAUL_INSTRUCTION_SET

#endif  // LONGHAUL_COMPUTE_BACKEND_CPU_SIMD_MULTIPLY_ADD_H_
