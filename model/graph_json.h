// A graph as JSON, for models that users bring themselves (docs/formats.md).
#ifndef LONGHAUL_MODEL_GRAPH_JSON_H_
#define LONGHAUL_MODEL_GRAPH_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/graph.h"

namespace longhaul::model {

// Longest text that GraphFromJson accepts, so that a run can hold it.
inline constexpr size_t kGraphBytesMax = 256 << 10;

// One line. Each operator's output edge must have the operator's name, as the families and
// GraphFromJson make it.
std::string GraphToJson(const Graph& graph);

// Reads and validates. Operators are in the order of execution, so that a cycle shows as an input
// that is made later. InvalidArgument names the operator, parameter or key, and what is wrong.
absl::StatusOr<Graph> GraphFromJson(absl::string_view json);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_GRAPH_JSON_H_
