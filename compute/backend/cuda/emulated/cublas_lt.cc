#include "base/check.h"
#include "compute/backend/cuda/emulated/cublasLt.h"
#include "compute/backend/element.h"

struct EmulatedCublasLt {};
struct EmulatedPreference {};
struct EmulatedMatrixLayout {
  cudaDataType_t type;
  int64_t rows, columns, stride;
};
struct EmulatedMatmulDesc {
  int32_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  void* extra = nullptr;
  int64_t extra_stride = 0;
};

namespace {

using longhaul::compute::BFloat16;

// gelu.h's tanh form, in double, and its slope.
double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluSlope(double x) {
  const double root = std::sqrt(2 / M_PI), tanh = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * x * x);
}

template <typename T>
struct Product {
  EmulatedMatmulDesc description;
  EmulatedMatrixLayout a_layout, b_layout, d_layout;
  const T* a;
  const T* b;
  T* d;

  double Sum(int64_t row, int64_t column) const {
    const bool a_turned = description.a_op == CUBLAS_OP_T,
               b_turned = description.b_op == CUBLAS_OP_T;
    const int64_t inner = a_turned ? a_layout.rows : a_layout.columns;
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) {
      const T left = a[a_turned ? row * a_layout.stride + i : i * a_layout.stride + row];
      const T right = b[b_turned ? i * b_layout.stride + column : column * b_layout.stride + i];
      sum += static_cast<double>(left) * static_cast<double>(right);
    }
    return sum;
  }

  void operator()() const {
    T* const extra = static_cast<T*>(description.extra);
    for (int64_t column = 0; column < d_layout.columns; ++column) {
      for (int64_t row = 0; row < d_layout.rows; ++row) {
        double value = Sum(row, column);
        const int64_t extra_at = column * description.extra_stride + row;
        if (description.epilogue == CUBLASLT_EPILOGUE_DGELU) {
          value *= GeluSlope(static_cast<double>(extra[extra_at]));
        } else {
          value += static_cast<double>(static_cast<const T*>(description.bias)[row]);
        }
        if (description.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
          extra[extra_at] = static_cast<T>(static_cast<float>(value));
          value = Gelu(value);
        }
        d[column * d_layout.stride + row] = static_cast<T>(static_cast<float>(value));
      }
    }
  }
};

// The largest power of two, up to 256, that divides the address; of null, that much.
uint64_t AlignmentOf(const void* memory) {
  constexpr uint64_t kMost = 256;
  const uint64_t address = reinterpret_cast<uintptr_t>(memory) | kMost;
  return address & -address;
}

void CheckAligned(const void* memory) {
  LH_CHECK(reinterpret_cast<uintptr_t>(memory) % 16 == 0, "memory is not aligned as promised");
}

}  // namespace

size_t cublasLtGetVersion() { return 0; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static EmulatedCublasLt only;  // users may keep it from being destroyed
  *handle = &only;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t) {
  *description = new EmulatedMatmulDesc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const auto set = [&](auto& member) {
    LH_CHECK(bytes == sizeof(member), "an attribute of ", bytes, " bytes");
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description->a_op);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description->b_op);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(description->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(description->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(description->extra);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(description->extra_stride);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  *layout = new EmulatedMatrixLayout{type, static_cast<int64_t>(rows),
                                     static_cast<int64_t>(columns), stride};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  *count = 0;
  const bool is_gelu = description->epilogue != CUBLASLT_EPILOGUE_BIAS;
  if (is_gelu && description->extra_stride % 8 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  // An algorithm may count on what it saw of them.
  *results = {};
  results->algo.data[0] = AlignmentOf(description->bias);
  results->algo.data[1] = AlignmentOf(description->extra);
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                              cudaStream_t stream) {
  LH_CHECK(*static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0 &&
           c == d);
  for (const void* memory : {a, b, const_cast<const void*>(d), description->bias,
                             const_cast<const void*>(description->extra)}) {
    CheckAligned(memory);
  }
  if (AlignmentOf(description->bias) < algorithm->data[0] ||
      AlignmentOf(description->extra) < algorithm->data[1]) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto queue = [&]<typename T>(const T* left) {
    longhaul::compute::emulated::Queue(
        stream, Product<T>{*description, *a_layout, *b_layout, *d_layout, left,
                           static_cast<const T*>(b), static_cast<T*>(d)});
    return CUBLAS_STATUS_SUCCESS;
  };
  return a_layout->type == CUDA_R_16BF ? queue(static_cast<const BFloat16*>(a))
                                       : queue(static_cast<const float*>(a));
}
