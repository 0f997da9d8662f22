// Matrix products through cuBLASLt, whose results are worked on before they are written.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_LT_PRODUCT_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_LT_PRODUCT_H_

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/statusor.h"
#include "compute/backend/cuda/operand.h"
#include "compute/backend/element.h"

namespace longhaul::compute::cuda {

enum class Epilogue {
  kBias,          // c = product + bias
  kGeluOfBias,    // extra = product + bias, c = gelu(extra)
  kGeluGradient,  // c = product * gelu'(extra)
};

// Rows one after the other: the product of a [rows, inner] and b [inner, columns] becomes
// c [rows, columns]. bias [columns]; extra [rows, columns], written or read. c overlaps none.
template <typename T>
struct LtProduct {
  int64_t rows = 0, columns = 0, inner = 0;
  Operand<T> a, b;
  T* c = nullptr;
  Epilogue epilogue = Epilogue::kBias;
  const T* bias = nullptr;
  T* extra = nullptr;
};

// Owns a handle and, for every shape that was asked for, what cuBLASLt chose for it; made at the
// first call with the shape, without device memory. One thread at a time.
class LtProducts {
 public:
  // Uses `workspace` of the device, which must outlive it, as the stream must.
  static absl::StatusOr<std::unique_ptr<LtProducts>> Make(cudaStream_t stream, void* workspace,
                                                          size_t workspace_bytes);
  ~LtProducts();
  // cuBLASLt's handle stays until the process ends: for a device that hangs, for which its end
  // might wait.
  void KeepHandle() { handle_ = nullptr; }
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  // Queues the product, summed in floats. False, and nothing queued, where cuBLASLt has nothing for
  // it: memory that does not begin at 16 bytes, or rows that do not, or a shape it refuses. T is
  // float or BFloat16.
  template <typename T>
  absl::StatusOr<bool> Run(const LtProduct<T>& product);

 private:
  struct Plan;
  // Element, epilogue, a and b transposed, rows, columns, inner.
  using Key = std::tuple<Element, Epilogue, bool, bool, int64_t, int64_t, int64_t>;

  LtProducts(cudaStream_t stream, void* workspace, size_t workspace_bytes);
  template <typename T>
  absl::StatusOr<Plan*> PlanOf(const LtProduct<T>& product);

  const cudaStream_t stream_;
  void* const workspace_;
  const size_t workspace_bytes_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_LT_PRODUCT_H_
