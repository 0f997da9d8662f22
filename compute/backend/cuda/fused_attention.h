// Attention by a library, where one is there and serves the shape; the operator's own kernel is for
// the rest (ops/causal_attention_cuda.cu).
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_FUSED_ATTENTION_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_FUSED_ATTENTION_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/backend/element.h"

namespace longhaul::compute::cuda {

// Of ops/causal_attention.h.
struct AttentionExtents {
  int64_t batch = 0, context = 0, heads = 0, kv_heads = 0, head_width = 0;

  int64_t width() const { return heads * head_width; }
  int64_t qkv_width() const { return width() + 2 * kv_heads * head_width; }
  auto operator<=>(const AttentionExtents&) const = default;
};

// Device memory, laid out as the operator's. What a call does not need is null.
struct AttentionMemory {
  const BFloat16* qkv = nullptr;
  BFloat16* output = nullptr;  // forward writes, backward reads
  float* lse = nullptr;        // as output
  const BFloat16* output_gradient = nullptr;
  BFloat16* qkv_gradient = nullptr;
};

// What a library does for one shape. Queues on the stream that it was made for.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
  // Device memory that a call needs besides; what it holds does not survive the call.
  virtual size_t forward_bytes() const = 0;
  virtual size_t backward_bytes() const = 0;
  virtual absl::Status Forward(const AttentionMemory& memory, void* workspace) = 0;
  // The bits of the gradient are the same each time if is_deterministic().
  virtual absl::Status Backward(const AttentionMemory& memory, void* workspace) = 0;
  virtual bool is_deterministic() const = 0;
};

class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  virtual std::string name() const = 0;  // with the version: "cudnn-91900"
  // An error says why it does not serve the shape here. Allocates no device memory.
  virtual absl::StatusOr<std::unique_ptr<AttentionPlan>> Plan(const AttentionExtents& extents) = 0;
};

// The one that this build has, for `stream`. An error says why there is none: none was built in, or
// what it needs is not installed.
absl::StatusOr<std::unique_ptr<FusedAttention>> OpenFusedAttention(cudaStream_t stream);

// Which kernel computes attention, asked once for each shape. One thread at a time.
class AttentionChoice {
 public:
  explicit AttentionChoice(absl::StatusOr<std::unique_ptr<FusedAttention>> library);

  // Null: the operator's own kernel. Heads of BFloat16 whose width is a multiple of 8 up to 256 are
  // the library's to refuse; others it is not asked.
  AttentionPlan* For(Element element, const AttentionExtents& extents);
  // The library's name, with "deterministic" or not; "own", with the reason where the library was
  // wanted.
  std::string NameFor(Element element, const AttentionExtents& extents);
  // The library stays until the process ends: for a device that hangs, for which its end might
  // wait.
  void KeepLibrary() { (void)library_.release(); }
  // For numeric classes: the library's name, "own" without.
  std::string library_name() const { return library_ == nullptr ? "own" : library_->name(); }

 private:
  using Answer = absl::StatusOr<std::unique_ptr<AttentionPlan>>;
  const Answer& Ask(const AttentionExtents& extents);

  std::unique_ptr<FusedAttention> library_;  // or null
  absl::Status why_none_;
  std::map<AttentionExtents, Answer> plans_;
};

// Whether the library may be given this memory: it wants multiples of 16 bytes.
bool IsForLibrary(const AttentionMemory& memory);

}  // namespace longhaul::compute::cuda

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_FUSED_ATTENTION_H_
