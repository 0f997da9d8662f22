#include "compute/backend/cuda/lt_product.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute::cuda {
namespace {

constexpr int64_t kAlignBytes = 16;
constexpr const char* kWhat = "matrix product with an epilogue";

cudaDataType_t TypeOf(Element element) {
  LH_CHECK(element != Element::kFloat64, "cuBLASLt is not asked for doubles");
  return element == Element::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGeluOfBias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  LH_CHECK(false, "epilogue ", static_cast<int>(epilogue));
}

bool IsAligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kAlignBytes == 0;
}

// The same product somewhere else: at addresses that are multiples of 16 bytes and no more.
// cuBLASLt reads the alignment of bias and extra matrix from their addresses when it is asked for
// an algorithm, which then serves all products of the shape.
template <typename T>
LtProduct<T> LeastAligned(LtProduct<T> product) {
  if (product.bias != nullptr) product.bias = reinterpret_cast<const T*>(kAlignBytes);
  if (product.extra != nullptr) product.extra = reinterpret_cast<T*>(kAlignBytes);
  return product;
}

// Null pointers are aligned.
template <typename T>
bool IsAligned(const LtProduct<T>& product) {
  const auto rows_are = [](int64_t width) {
    return width * static_cast<int64_t>(sizeof(T)) % kAlignBytes == 0;
  };
  return IsAligned(product.a.values) && IsAligned(product.b.values) && IsAligned(product.c) &&
         IsAligned(product.bias) && IsAligned(product.extra) && rows_are(product.inner) &&
         rows_are(product.columns) && rows_are(product.a.transposed ? product.rows : product.inner);
}

// cuBLASLt wants whole groups of 8 columns of the matrix beside the product.
template <typename T>
bool MayHaveExtra(const LtProduct<T>& product) {
  return product.epilogue == Epilogue::kBias || product.columns % 8 == 0;
}

template <typename Value>
absl::Status Set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                 const Value& value) {
  return CublasStatus(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
                      kWhat);
}
template <typename Value>
absl::Status Set(cublasLtMatmulPreference_t preference,
                 cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  return CublasStatus(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)), kWhat);
}

// A matrix of cuBLASLt, whose columns lie one after the other.
absl::Status MakeLayout(Element element, int64_t rows, int64_t columns,
                        cublasLtMatrixLayout_t& layout) {
  return CublasStatus(
      cublasLtMatrixLayoutCreate(&layout, TypeOf(element), static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), rows),
      kWhat);
}

// Owns what the heuristics are told.
class Preference {
 public:
  ~Preference() {
    if (preference_ != nullptr) cublasLtMatmulPreferenceDestroy(preference_);
  }
  absl::Status Make(size_t workspace_bytes) {
    LH_RETURN_IF_ERROR(CublasStatus(cublasLtMatmulPreferenceCreate(&preference_), kWhat));
    LH_RETURN_IF_ERROR(Set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                           static_cast<uint64_t>(workspace_bytes)));
    // Parts of the summed dimension are added in floats.
    LH_RETURN_IF_ERROR(Set(preference_, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                           static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      LH_RETURN_IF_ERROR(Set(preference_, attribute, static_cast<uint32_t>(kAlignBytes)));
    }
    return absl::OkStatus();
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

// cuBLASLt sees the transposes of our matrices and computes c^T = b^T a^T.
struct LtProducts::Plan {
  ~Plan() {
    for (const cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (description != nullptr) cublasLtMatmulDescDestroy(description);
  }

  template <typename T>
  absl::Status Describe(const LtProduct<T>& product) {
    LH_RETURN_IF_ERROR(CublasStatus(
        cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), kWhat));
    const auto op = [](bool transposed) -> int32_t {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    LH_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSA, op(product.b.transposed)));
    LH_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_TRANSB, op(product.a.transposed)));
    LH_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE,
                           static_cast<uint32_t>(EpilogueOf(product.epilogue))));
    if (product.epilogue != Epilogue::kBias) {
      LH_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.columns));
    }
    LH_RETURN_IF_ERROR(Point(product));
    constexpr Element kElement = kElementOf<T>;
    const auto layout = [&](bool transposed, int64_t rows, int64_t columns,
                            cublasLtMatrixLayout_t& made) {
      return transposed ? MakeLayout(kElement, columns, rows, made)
                        : MakeLayout(kElement, rows, columns, made);
    };
    LH_RETURN_IF_ERROR(layout(product.b.transposed, product.columns, product.inner, b));
    LH_RETURN_IF_ERROR(layout(product.a.transposed, product.inner, product.rows, a));
    return layout(false, product.columns, product.rows, c);
  }

  // Says where bias and extra matrix are.
  template <typename T>
  absl::Status Point(const LtProduct<T>& product) {
    if (product.epilogue != Epilogue::kGeluGradient) {
      LH_RETURN_IF_ERROR(Set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias));
    }
    if (product.epilogue == Epilogue::kBias) return absl::OkStatus();
    return Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.extra);
  }

  absl::Status Choose(cublasLtHandle_t handle, size_t workspace_bytes) {
    Preference preference;
    LH_RETURN_IF_ERROR(preference.Make(workspace_bytes));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, description, b, a, c, c, preference.get(), 1, &result, &found);
    // Which of the two it answers to what it does not do differs between versions.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
      return absl::OkStatus();
    }
    LH_RETURN_IF_ERROR(CublasStatus(status, kWhat));
    exists = found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    algorithm = result.algo;
    return absl::OkStatus();
  }

  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;  // of the operands of that name
  cublasLtMatmulAlgo_t algorithm{};
  bool exists = false;  // an algorithm
};

LtProducts::LtProducts(cudaStream_t stream, void* workspace, size_t workspace_bytes)
    : stream_(stream), workspace_(workspace), workspace_bytes_(workspace_bytes) {}

absl::StatusOr<std::unique_ptr<LtProducts>> LtProducts::Make(cudaStream_t stream, void* workspace,
                                                             size_t workspace_bytes) {
  auto products = std::unique_ptr<LtProducts>(new LtProducts(stream, workspace, workspace_bytes));
  LH_RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&products->handle_), "cuBLASLt"));
  return products;
}

LtProducts::~LtProducts() {
  plans_.clear();
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

template <typename T>
absl::StatusOr<LtProducts::Plan*> LtProducts::PlanOf(const LtProduct<T>& product) {
  const Key key{kElementOf<T>, product.epilogue, product.a.transposed, product.b.transposed,
                product.rows,  product.columns,  product.inner};
  std::unique_ptr<Plan>& kept = plans_[key];
  if (kept == nullptr) {
    auto plan = std::make_unique<Plan>();
    LH_RETURN_IF_ERROR(plan->Describe(LeastAligned(product)));
    LH_RETURN_IF_ERROR(plan->Choose(handle_, workspace_bytes_));
    kept = std::move(plan);
  }
  return kept.get();
}

template <typename T>
absl::StatusOr<bool> LtProducts::Run(const LtProduct<T>& product) {
  if (!IsAligned(product) || !MayHaveExtra(product)) return false;
  LH_ASSIGN_OR_RETURN(Plan* const plan, PlanOf(product));
  if (!plan->exists) return false;
  LH_RETURN_IF_ERROR(plan->Point(product));
  const float one = 1, zero = 0;
  LH_RETURN_IF_ERROR(
      CublasStatus(cublasLtMatmul(handle_, plan->description, &one, product.b.values, plan->b,
                                  product.a.values, plan->a, &zero, product.c, plan->c, product.c,
                                  plan->c, &plan->algorithm, workspace_, workspace_bytes_, stream_),
                   kWhat));
  return true;
}

template absl::StatusOr<bool> LtProducts::Run<float>(const LtProduct<float>&);
template absl::StatusOr<bool> LtProducts::Run<BFloat16>(const LtProduct<BFloat16>&);

}  // namespace longhaul::compute::cuda
