// Private to model/: how the widths, shapes and attributes of each kind of operator fit together.
#ifndef LONGHAUL_MODEL_OP_CHECKS_H_
#define LONGHAUL_MODEL_OP_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"

namespace longhaul::model {

// OpKindInfo::check.
absl::Status CheckNothing(const Graph& graph, const Op& op);
absl::Status CheckNorm(const Graph& graph, const Op& op);
absl::Status CheckSameWidth(const Graph& graph, const Op& op);  // of all inputs and the output
absl::Status CheckSwiGlu(const Graph& graph, const Op& op);
absl::Status CheckRotary(const Graph& graph, const Op& op);
absl::Status CheckCausalAttention(const Graph& graph, const Op& op);
absl::Status CheckDropout(const Graph& graph, const Op& op);
absl::Status CheckLoss(const Graph& graph, const Op& op);

// OpKindInfo::parameter_shape.
std::vector<int64_t> NoShape(const Graph& graph, const Op& op, size_t slot);
std::vector<int64_t> EmbeddingShape(const Graph& graph, const Op& op, size_t slot);
std::vector<int64_t> NormShape(const Graph& graph, const Op& op, size_t slot);
std::vector<int64_t> LinearShape(const Graph& graph, const Op& op, size_t slot);

// The operator's parameters have the shapes that its kind states.
absl::Status CheckParameterShapes(const Graph& graph, const Op& op);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_OP_CHECKS_H_
