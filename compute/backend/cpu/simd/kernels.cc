#include "compute/backend/cpu/simd/kernels.h"

#include "compute/backend/cpu/simd/instruction_sets.h"

namespace longhaul::compute {
namespace {

const InstructionSet& Best() {
  static const InstructionSet best = [] {
    InstructionSet sets[kInstructionSetsMax];
    return sets[SupportedInstructionSets(sets) - 1];
  }();
  return best;
}

}  // namespace

int SupportedInstructionSets(InstructionSet (&sets)[kInstructionSetsMax]) {
  int count = 0;
  sets[count++] = baseline::Set();
#if defined(__x86_64__)
  const bool fused = __builtin_cpu_supports("fma");
  if (fused && __builtin_cpu_supports("avx2")) sets[count++] = avx2::Set();
  if (fused && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    sets[count++] = avx512::Set();
  }
#endif
  return count;
}

template <>
const Kernels<float>& BestKernels<float>() {
  return *Best().float_kernels;
}

template <>
const Kernels<double>& BestKernels<double>() {
  return *Best().double_kernels;
}

}  // namespace longhaul::compute
