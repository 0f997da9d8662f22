// Fused attention by cuDNN's graphs (its frontend's headers). The library is opened at run time, so
// that a machine without it computes with our own kernel.
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cmath>
#include <exception>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/fused_attention.h"
#include "model/attention_blocks.h"

namespace cudnn_frontend {

// The frontend looks for cuDNN's functions in it.
void* cudnn_dlhandle = nullptr;

}  // namespace cudnn_frontend

namespace longhaul::compute::cuda {
namespace {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Heads that every cuDNN serves: what it does not plan for them it plans for none.
constexpr AttentionExtents kProbe{
    .batch = 1, .context = 128, .heads = 2, .kv_heads = 2, .head_width = 64};

enum Id : int64_t {  // of tensors
  kQ = 1,
  kK,
  kV,
  kO,
  kStatistics,
  kOGradient,
  kQGradient,
  kKGradient,
  kVGradient,
};

absl::Status StatusOf(const fe::error_t& error, absl::string_view what) {
  if (error.is_good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cuDNN: ", what, ": ", error.err_msg));
}

// Exceptions of the frontend end here.
template <typename Body>
auto Guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cuDNN: ", error.what()));
  }
}

// A graph of one direction, built for the device.
class BuiltGraph {
 public:
  BuiltGraph() : graph_(std::make_unique<Graph>()) {
    graph_->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }
  Graph& operator*() { return *graph_; }

  // An error if cuDNN does not serve it.
  absl::Status Build(cudnnHandle_t handle) {
    LH_RETURN_IF_ERROR(StatusOf(graph_->build(handle, {fe::HeurMode_t::A}), "attention"));
    return StatusOf(graph_->get_workspace_size(bytes_), "attention's workspace");
  }
  size_t bytes() const { return static_cast<size_t>(bytes_); }

  absl::Status Run(cudnnHandle_t handle, std::unordered_map<int64_t, void*> memory,
                   void* workspace) {
    return Guarded(
        [&] { return StatusOf(graph_->execute(handle, memory, workspace), "attention"); });
  }

 private:
  std::unique_ptr<Graph> graph_;
  int64_t bytes_ = 0;
};

// The operator's layouts as cuDNN's dimensions (sequence, head, position, column).
class Layout {
 public:
  explicit Layout(const AttentionExtents& extents) : extents_(extents) {}

  // Heads of q | k | v, which begin at the pointer that is given at run time.
  Tensor InQkv(Graph& graph, Id id, int64_t heads) const {
    Tensor tensor = graph.tensor(fe::graph::Tensor_attributes());
    return PlaceInQkv(tensor, id, heads);
  }
  Tensor PlaceInQkv(const Tensor& tensor, Id id, int64_t heads) const {
    return Place(tensor, id, heads, extents_.qkv_width());
  }
  Tensor InOutput(Graph& graph, Id id) const {
    Tensor tensor = graph.tensor(fe::graph::Tensor_attributes());
    return PlaceInOutput(tensor, id);
  }
  Tensor PlaceInOutput(const Tensor& tensor, Id id) const {
    return Place(tensor, id, extents_.heads, extents_.width());
  }
  Tensor PlaceStatistics(const Tensor& tensor) const {
    tensor->set_uid(kStatistics)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({extents_.batch, extents_.heads, extents_.context, 1})
        .set_stride({extents_.heads * extents_.context, extents_.context, 1, 1});
    return tensor;
  }

 private:
  Tensor Place(const Tensor& tensor, Id id, int64_t heads, int64_t row) const {
    tensor->set_uid(id)
        .set_data_type(fe::DataType_t::BFLOAT16)
        .set_dim({extents_.batch, heads, extents_.context, extents_.head_width})
        .set_stride({extents_.context * row, extents_.head_width, row, 1});
    return tensor;
  }

  const AttentionExtents extents_;
};

template <typename Attributes>
Attributes Causal(const AttentionExtents& extents) {
  Attributes attributes;
  attributes.set_attn_scale(1.0f / std::sqrt(static_cast<float>(extents.head_width)))
      .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
      .set_diagonal_band_right_bound(0);
  return attributes;
}

class CudnnPlan final : public AttentionPlan {
 public:
  CudnnPlan(cudnnHandle_t handle, const AttentionExtents& extents)
      : handle_(handle), extents_(extents) {}

  // An error if cuDNN does not serve the shape.
  absl::Status Build() {
    LH_RETURN_IF_ERROR(BuildForward());
    BuiltGraph in_order = Describe(true);
    if (in_order.Build(handle_).ok() &&
        static_cast<int64_t>(in_order.bytes()) <= model::kInOrderAttentionBytesMax) {
      backward_ = std::move(in_order);
      is_deterministic_ = true;
      return absl::OkStatus();
    }
    backward_ = Describe(false);
    return backward_.Build(handle_);
  }

  size_t forward_bytes() const override { return forward_.bytes(); }
  size_t backward_bytes() const override { return backward_.bytes(); }
  bool is_deterministic() const override { return is_deterministic_; }

  absl::Status Forward(const AttentionMemory& memory, void* workspace) override {
    std::unordered_map<int64_t, void*> tensors = Heads(memory.qkv, kQ);
    tensors[kO] = memory.output;
    tensors[kStatistics] = memory.lse;
    return forward_.Run(handle_, std::move(tensors), workspace);
  }

  absl::Status Backward(const AttentionMemory& memory, void* workspace) override {
    std::unordered_map<int64_t, void*> tensors = Heads(memory.qkv, kQ);
    tensors.merge(Heads(memory.qkv_gradient, kQGradient));
    tensors[kO] = memory.output;
    tensors[kStatistics] = memory.lse;
    tensors[kOGradient] = const_cast<BFloat16*>(memory.output_gradient);
    return backward_.Run(handle_, std::move(tensors), workspace);
  }

 private:
  // Where q, k and v begin in rows of q | k | v; k and v have the ids after q's.
  std::unordered_map<int64_t, void*> Heads(const BFloat16* qkv, int64_t q) const {
    auto* const first = const_cast<BFloat16*>(qkv);
    return {{q, first},
            {q + 1, first + extents_.width()},
            {q + 2, first + extents_.width() + extents_.kv_heads * extents_.head_width}};
  }

  absl::Status BuildForward() {
    const Layout layout(extents_);
    Graph& graph = *forward_;
    const Tensor q = layout.InQkv(graph, kQ, extents_.heads);
    const Tensor k = layout.InQkv(graph, kK, extents_.kv_heads);
    const Tensor v = layout.InQkv(graph, kV, extents_.kv_heads);
    auto attributes = Causal<fe::graph::SDPA_attributes>(extents_);
    attributes.set_generate_stats(true);
    const auto [output, statistics] = graph.sdpa(q, k, v, std::move(attributes));
    layout.PlaceInOutput(output, kO)->set_output(true);
    layout.PlaceStatistics(statistics)->set_output(true);
    return forward_.Build(handle_);
  }

  BuiltGraph Describe(bool in_order) const {
    const Layout layout(extents_);
    BuiltGraph built;
    Graph& graph = *built;
    const Tensor q = layout.InQkv(graph, kQ, extents_.heads);
    const Tensor k = layout.InQkv(graph, kK, extents_.kv_heads);
    const Tensor v = layout.InQkv(graph, kV, extents_.kv_heads);
    const Tensor output = layout.InOutput(graph, kO);
    const Tensor gradient = layout.InOutput(graph, kOGradient);
    const Tensor statistics = layout.PlaceStatistics(graph.tensor(fe::graph::Tensor_attributes()));
    auto attributes = Causal<fe::graph::SDPA_backward_attributes>(extents_);
    attributes.set_deterministic_algorithm(in_order);
    const auto gradients =
        graph.sdpa_backward(q, k, v, output, gradient, statistics, std::move(attributes));
    layout.PlaceInQkv(gradients[0], kQGradient, extents_.heads)->set_output(true);
    layout.PlaceInQkv(gradients[1], kKGradient, extents_.kv_heads)->set_output(true);
    layout.PlaceInQkv(gradients[2], kVGradient, extents_.kv_heads)->set_output(true);
    return built;
  }

  const cudnnHandle_t handle_;
  const AttentionExtents extents_;
  BuiltGraph forward_, backward_;
  bool is_deterministic_ = false;
};

class CudnnAttention final : public FusedAttention {
 public:
  ~CudnnAttention() override {
    if (handle_ != nullptr) fe::detail::destroy_handle(handle_);
  }
  absl::Status Open(cudaStream_t stream) {
    const cudnnStatus_t made = fe::detail::create_handle(&handle_);
    if (made != CUDNN_STATUS_SUCCESS) return Failed(made);
    const cudnnStatus_t set = fe::detail::set_stream(handle_, stream);
    return set == CUDNN_STATUS_SUCCESS ? absl::OkStatus() : Failed(set);
  }

  std::string name() const override {
    return absl::StrCat("cudnn-", fe::detail::get_backend_version());
  }

  absl::StatusOr<std::unique_ptr<AttentionPlan>> Plan(const AttentionExtents& extents) override {
    return Guarded([&]() -> absl::StatusOr<std::unique_ptr<AttentionPlan>> {
      auto plan = std::make_unique<CudnnPlan>(handle_, extents);
      LH_RETURN_IF_ERROR(plan->Build());
      return plan;
    });
  }

 private:
  static absl::Status Failed(cudnnStatus_t status) {
    return absl::UnavailableError(
        absl::StrCat("cuDNN does not start: ", fe::detail::get_error_string(status)));
  }

  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

// What else cuDNN and its frontend need, NVRTC and CUDA's runtime, shows when the probe is planned.
absl::StatusOr<std::unique_ptr<FusedAttention>> OpenFusedAttention(cudaStream_t stream) {
  if (fe::cudnn_dlhandle == nullptr) fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
  if (fe::cudnn_dlhandle == nullptr) {
    return absl::NotFoundError(absl::StrCat("no cuDNN: ", dlerror()));
  }
  return Guarded([&]() -> absl::StatusOr<std::unique_ptr<FusedAttention>> {
    auto attention = std::make_unique<CudnnAttention>();
    LH_RETURN_IF_ERROR(attention->Open(stream));
    LH_RETURN_IF_ERROR(attention->Plan(kProbe).status());
    return attention;
  });
}

}  // namespace longhaul::compute::cuda
