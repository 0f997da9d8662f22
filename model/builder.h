// Private to model/: appends operators one after another, for the families.
#ifndef LONGHAUL_MODEL_BUILDER_H_
#define LONGHAUL_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/family.h"
#include "model/graph.h"

namespace longhaul::model {

// Standard deviation of initial matrices (Radford et al. 2019).
inline constexpr double kStandardDeviation = 0.02;
// Of the matrices whose results the residual stream adds up: 0.02 / sqrt(2 * layers).
double ResidualDeviation(const ModelSpec& spec);

// InvalidArgument names the key ("model.heads") and the remedy: what every family needs.
absl::Status CheckFamilySpec(const ModelSpec& spec);

// Each method returns the edge that its operator makes. Edges and operators share their names.
class Builder {
 public:
  explicit Builder(const ModelSpec& spec);

  void SetLayer(int layer) { layer_ = layer; }
  Graph Finish() { return std::move(graph_); }

  int AddMatrix(const std::string& name, int64_t rows, int64_t columns, double deviation);
  // `positions`: -1 where there is no table of them.
  int Embedding(int table, int positions);
  int LayerNorm(const std::string& name, int input);
  int RmsNorm(const std::string& name, int input);
  int Linear(const std::string& name, int input, int64_t out, double deviation, bool bias);
  int Head(int input, int weight);
  int Gelu(const std::string& name, int input);
  int SwiGlu(const std::string& name, int input);
  int Rotate(const std::string& name, int qkv);
  int Attention(const std::string& name, int qkv);
  // `input` itself where the model has no dropout.
  int Dropout(const std::string& name, int input);
  int Add(const std::string& name, int a, int b);
  void Loss(int logits);

 private:
  int AddParameter(Parameter parameter);
  int AddVector(const std::string& name, int64_t size, InitKind init);
  int AddOp(OpKind kind, const std::string& name, std::vector<int> inputs, int64_t width,
            std::vector<int> parameters);

  const ModelSpec spec_;
  int layer_ = 0;
  Graph graph_;
};

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_BUILDER_H_
