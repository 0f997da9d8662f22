#include "model/graph.h"

#include <algorithm>

#include "base/check.h"

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

}  // namespace

int64_t Parameter::elements() const {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

std::vector<int> Graph::CutPoints() const {
  const int positions = static_cast<int>(ops.size());
  std::vector<int> change(positions + 1, 0);  // edges that begin or cease to cross at a position
  for (const EdgeSpan& span : EdgeSpans(*this)) {
    if (span.made == kNever || span.last_read <= span.made) continue;
    ++change[span.made + 1];
    --change[span.last_read + 1];
  }
  std::vector<int> cuts;
  int crossing = 0;
  for (int position = 1; position < positions; ++position) {
    crossing += change[position];
    const bool between_blocks = ops[position - 1].layer != ops[position].layer;
    if (between_blocks && crossing == 1) cuts.push_back(position);
  }
  return cuts;
}

int Graph::CutEdge(int position) const {
  int crossing = -1;
  const std::vector<EdgeSpan> spans = EdgeSpans(*this);
  for (int edge = 0; edge < static_cast<int>(spans.size()); ++edge) {
    if (spans[edge].made == kNever || spans[edge].made >= position) continue;
    if (spans[edge].last_read < position) continue;
    LH_CHECK(crossing == -1, "edges ", crossing, " and ", edge, " cross position ", position);
    crossing = edge;
  }
  LH_CHECK(crossing != -1, "no edge crosses position ", position);
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
