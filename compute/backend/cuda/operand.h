// A factor of a matrix product.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_OPERAND_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_OPERAND_H_

namespace longhaul::compute::cuda {

// Device memory of a matrix whose rows lie one after the other.
template <typename T>
struct Operand {
  const T* values = nullptr;
  bool transposed = false;  // stored as its transpose
};

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_OPERAND_H_
