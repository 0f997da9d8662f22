#include "model/graph.h"

#include <algorithm>

namespace longhaul::model {
namespace {

constexpr int kNever = -1;

// By edge: the position of the operator that makes it, and of the last that reads it.
struct EdgeSpan {
  int made = kNever;
  int last_read = kNever;
};

std::vector<EdgeSpan> EdgeSpans(const Graph& graph) {
  std::vector<EdgeSpan> spans(graph.edges.size());
  for (int position = 0; position < static_cast<int>(graph.ops.size()); ++position) {
    const Op& op = graph.ops[position];
    for (int edge : op.inputs) spans[edge].last_read = position;
    if (op.output >= 0) spans[op.output].made = position;
  }
  return spans;
}

// The operators that use each tied parameter, ascending.
std::vector<std::vector<int>> UsesOfTied(const Graph& graph) {
  std::vector<std::vector<int>> uses(graph.parameters.size());
  for (const ParameterUse& use : graph.Uses({0, static_cast<int>(graph.ops.size())})) {
    uses[use.parameter].push_back(use.op);
  }
  std::erase_if(uses, [](const std::vector<int>& of_one) { return of_one.size() < 2; });
  return uses;
}

}  // namespace

int64_t Parameter::elements() const {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

std::vector<int> Graph::CutPoints() const {
  const int head = static_cast<int>(ops.size()) - 2;
  std::vector<int> inside(ops.size() + 1, 0);  // changes of how many tied parameters forbid a cut
  for (const std::vector<int>& uses : UsesOfTied(*this)) {
    const bool ends = uses.front() == 0 && uses.back() == head;
    ++inside[uses.front() + 1];
    --inside[(ends ? uses[uses.size() - 2] : uses.back()) + 1];
  }
  std::vector<int> cuts;
  int forbidding = 0;
  for (int position = 1; position <= head; ++position) {
    forbidding += inside[position];
    if (forbidding == 0) cuts.push_back(position);
  }
  return cuts;
}

std::vector<int> Graph::BlockPoints() const {
  std::vector<int> points = CutPoints();
  std::erase_if(points,
                [this](int position) { return ops[position - 1].layer == ops[position].layer; });
  return points;
}

std::vector<int> Graph::CutEdges(int position) const {
  std::vector<int> crossing;
  const std::vector<EdgeSpan> spans = EdgeSpans(*this);
  for (int edge = 0; edge < static_cast<int>(spans.size()); ++edge) {
    if (spans[edge].made == kNever || spans[edge].made >= position) continue;
    if (spans[edge].last_read >= position) crossing.push_back(edge);
  }
  return crossing;
}

std::vector<ParameterUse> Graph::Uses(OpRange range) const {
  std::vector<ParameterUse> uses;
  for (int op = range.begin; op < range.end; ++op) {
    for (int parameter : ops[op].parameters) uses.push_back({parameter, op});
  }
  return uses;
}

std::vector<int> Graph::ParametersOf(OpRange range) const {
  std::vector<int> indices;
  for (const ParameterUse& use : Uses(range)) indices.push_back(use.parameter);
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::vector<int> Graph::TiedParameters() const {
  std::vector<int> count(parameters.size(), 0);
  for (const ParameterUse& use : Uses({0, static_cast<int>(ops.size())})) ++count[use.parameter];
  std::vector<int> tied;
  for (int index = 0; index < static_cast<int>(count.size()); ++index) {
    if (count[index] > 1) tied.push_back(index);
  }
  return tied;
}

int64_t Graph::ParameterCount() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.elements();
  return count;
}

}  // namespace longhaul::model
