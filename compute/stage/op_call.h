// Calls the operator of compute/ops that an operator of the graph stands for.
#ifndef LONGHAUL_COMPUTE_STAGE_OP_CALL_H_
#define LONGHAUL_COMPUTE_STAGE_OP_CALL_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/backend/backend.h"
#include "model/graph.h"

namespace longhaul::compute {

// Which random draws a micro-batch's dropout takes, in forward and again in backward.
struct Draws {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_sequence = 0;  // of the micro-batch, in the global batch
  bool training = false;       // else nothing is dropped
};

// Everything one operator reads and writes for one micro-batch. What the operator does not have is
// empty.
template <typename T>
struct OpCall {
  const model::Op* op = nullptr;
  int position = 0;   // of the operator in the whole model
  int64_t batch = 0;  // sequences
  int64_t context = 0;
  int64_t vocab = 0;

  std::array<absl::Span<T>, 2> inputs;
  absl::Span<T> output;
  absl::Span<Wide<T>> statistics;
  absl::Span<Wide<T>> workspace;
  absl::Span<const Wide<T>> constants;
  std::array<absl::Span<const T>, 2> parameters;
  absl::Span<const int32_t> integers;  // embedding: token ids; loss: targets
  double* loss_sum = nullptr;          // loss, forward
  Draws draws;                         // dropout

  absl::Span<const T> output_gradient;                     // backward reads
  std::array<absl::Span<T>, 2> input_gradients;            // backward writes; kAdd writes none
  std::array<absl::Span<Wide<T>>, 2> parameter_gradients;  // backward adds

  int64_t rows() const { return batch * context; }
};

template <typename T>
absl::Status ForwardOp(Backend& backend, const OpCall<T>& call);
// Adds to the parameters' accumulators, writes the inputs' gradients.
template <typename T>
absl::Status BackwardOp(Backend& backend, const OpCall<T>& call);

// Computes what the operator's kind keeps as constants of a stage.
template <typename T>
absl::Status FillConstants(Backend& backend, const model::Graph& graph, const model::Op& op,
                           absl::Span<Wide<T>> constants);

// Makes what the operator needs before its first call; says which kernel an attention takes, as a
// person reads it, and nothing of other kinds.
template <typename T>
absl::StatusOr<std::string> PrepareOp(Backend& backend, const OpCall<T>& call);

// Elements of workspace that the operator asks for, from the operator's own function.
int64_t WorkspaceOf(const model::Graph& graph, const model::Op& op, int64_t micro_batch);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_OP_CALL_H_
