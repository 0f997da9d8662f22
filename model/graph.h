// A model as plain data: a list of operators over edges (activations) and parameters.
//
// Every activation is a matrix of token rows: a micro-batch of B sequences of T tokens has B*T
// rows, row b*T + t. Operators are listed in an order in which every input is made before it is
// used; that order is also the order of forward execution, and backward runs it in reverse.
#ifndef LONGHAUL_MODEL_GRAPH_H_
#define LONGHAUL_MODEL_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/rotary.h"

namespace longhaul::model {

// In the order of the table in op_kinds.cc, which knows the rest.
enum class OpKind {
  kEmbedding,            // tokens -> rows; parameters: table [vocab, width], positions [T, width]
                         // unless positions come from rotary
  kLayerNorm,            // parameters: weight [width], bias [width]
  kRmsNorm,              // parameter: weight [width]
  kLinear,               // y = x W^T (+ b); parameters: W [out, in], optional b [out]
  kGelu,                 // tanh approximation, as GPT-2
  kSwiGlu,               // input [rows, 2*width] = gate | up -> silu(gate) * up
  kRotary,               // turns q and k of q | k | v by position; copies v
  kCausalAttention,      // input q | k | v: `heads`, then twice `kv_heads` heads side by side
  kDropout,              // training: zero with `probability`, else times 1/(1 - probability)
  kAdd,                  // sum of two inputs (residual)
  kSoftmaxCrossEntropy,  // logits [rows, vocab] and targets -> loss; the last operator
};

enum class InitKind { kZeros, kOnes, kNormal };

struct Initializer {
  InitKind kind = InitKind::kZeros;
  double standard_deviation = 0;  // kNormal only
};

struct Parameter {
  std::string name;            // unique; "h.0.attn.qkv.weight"
  std::vector<int64_t> shape;  // row-major; matrices are [out, in]
  Initializer init;
  bool decays = false;       // weight decay applies (matrices only)
  int64_t elements() const;  // product of `shape`; within limits after Graph::Validate
};

struct Edge {
  std::string name;
  int64_t width = 0;  // columns; rows are the micro-batch's tokens
};

struct Op {
  OpKind kind = OpKind::kAdd;
  std::string name;
  int layer = 0;                     // block number; embedding counts to block 0, head to `layers`
  std::vector<int> inputs = {};      // edges
  int output = -1;                   // edge; -1 for the loss
  std::vector<int> parameters = {};  // indices into Graph::parameters, in the order OpKind states
  int64_t heads = 0;                 // kRotary, kCausalAttention: of queries
  double epsilon = 0;                // kLayerNorm, kRmsNorm
  int64_t kv_heads = 0;              // kRotary, kCausalAttention: of keys and of values
  double probability = 0;            // kDropout
  Rotary rotary = {};                // kRotary
};

// One use of a parameter by an operator. A tied parameter has several; each use has a gradient
// accumulator of its own, and the sum runs in the order of the operators.
struct ParameterUse {
  int parameter = 0;
  int op = 0;
};

// A contiguous run of operators, [begin, end).
struct OpRange {
  int begin = 0;
  int end = 0;
  bool operator==(const OpRange&) const = default;
};

struct Graph {
  std::string family;
  int64_t vocab = 0;
  int64_t context = 0;  // T
  int layers = 0;       // blocks, without the head
  std::vector<Parameter> parameters;
  std::vector<Edge> edges;
  std::vector<Op> ops;

  // Shapes fit and sizes are within model/limits.h; every edge is made once before it is used, and
  // is used; every parameter is used; names are unique; blocks ascend. The first operator and only
  // it is the embedding; the last and only it is the loss. The loss alone reads the logits, which a
  // linear operator of the same block makes: backward overwrites them with their gradient.
  // InvalidArgument names the operator, edge or parameter.
  absl::Status Validate() const;

  // The operator positions p, ascending, at which the model may be cut into ops [0, p) and [p,
  // end): all but that between the head's linear operator and the loss, and those that would put
  // uses of a tied parameter on stages other than the first and the last, or more than its last use
  // on the last. Never includes 0 and the end.
  std::vector<int> CutPoints() const;
  // Those cut points that lie between two blocks.
  std::vector<int> BlockPoints() const;
  // The edges that cross a cut at `position`, ascending: made before it and read at it or later.
  std::vector<int> CutEdges(int position) const;

  // Uses within a range, in operator order.
  std::vector<ParameterUse> Uses(OpRange range) const;
  // Parameters with a use in the range, ascending, each once.
  std::vector<int> ParametersOf(OpRange range) const;
  // Parameters used by more than one operator of the whole model.
  std::vector<int> TiedParameters() const;
  int64_t ParameterCount() const;
};

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_GRAPH_H_
