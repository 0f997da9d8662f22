// What is known of each kind of operator, one table row a kind: validation, buffer plans, costs and
// the JSON form follow from it.
#ifndef LONGHAUL_MODEL_OP_KINDS_H_
#define LONGHAUL_MODEL_OP_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/graph.h"

namespace longhaul::model {

// Floating-point operations of one micro-batch.
struct OpFlops {
  double forward = 0;
  double backward = 0;
};

// Members of Op that a kind has beside inputs, output and parameters.
enum OpAttribute : unsigned {
  kHeadsAttribute = 1,
  kKvHeadsAttribute = 2,
  kEpsilonAttribute = 4,
  kProbabilityAttribute = 8,
  kRotaryAttribute = 16,
};

struct OpKindInfo {
  OpKind kind;
  const char* name;  // in JSON and messages
  size_t inputs;
  size_t parameters_min, parameters_max;
  bool has_output;
  unsigned attributes;         // OpAttribute, or-ed
  bool backward_reads_input;   // its inputs' values
  bool backward_reads_output;  // its output's value
  bool passes_gradient_on;     // each input's gradient is the output's; backward computes nothing
  bool reads_rows_of_tables;   // of its parameters only as many rows as there are tokens

  // Functions of a graph whose indices are in range. The shape of the parameter at `slot`.
  std::vector<int64_t> (*parameter_shape)(const Graph& graph, const Op& op, size_t slot);
  // Widths and attributes fit together. InvalidArgument names the operator.
  absl::Status (*check)(const Graph& graph, const Op& op);
  OpFlops (*flops)(const Graph& graph, const Op& op, double rows);
  // Elements kept for backward beside edges; needed while it runs; computed once for a stage. Null:
  // none.
  int64_t (*statistics)(const Graph& graph, const Op& op, int64_t micro_batch);
  int64_t (*workspace)(const Graph& graph, const Op& op, int64_t micro_batch);
  int64_t (*constants)(const Graph& graph, const Op& op);
};

// Every kind, in the order of OpKind.
absl::Span<const OpKindInfo> OpKinds();
// The row of a kind, which must exist.
const OpKindInfo& InfoOf(OpKind kind);
// Null for an unknown name.
const OpKindInfo* FindOpKind(absl::string_view name);

// Columns of one head of the packed q | k | v rows that rotary and attention read.
int64_t HeadWidth(const Graph& graph, const Op& op);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_OP_KINDS_H_
