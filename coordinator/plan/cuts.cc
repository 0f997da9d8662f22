#include "coordinator/plan/cuts.h"

#include <cmath>

#include "model/buffer_plan.h"

namespace longhaul::coordinator {
namespace {

// A partition takes the square of the cuts, for every order of the nodes that is tried.
constexpr size_t kCheapestMax = 128;
constexpr size_t kEveryMax = 128;

}  // namespace

std::vector<double> CutBytes(const model::Graph& graph, int64_t micro_batch) {
  const int end = static_cast<int>(graph.ops.size());
  std::vector<int> made(graph.edges.size(), -1), last_read(graph.edges.size(), -1);
  for (int op = 0; op < end; ++op) {
    for (const int edge : graph.ops[op].inputs) last_read[edge] = op;
    if (graph.ops[op].output >= 0) made[graph.ops[op].output] = op;
  }
  std::vector<double> change(end + 1, 0);
  for (size_t edge = 0; edge < graph.edges.size(); ++edge) {
    const double elements = static_cast<double>(micro_batch) * static_cast<double>(graph.context) *
                            static_cast<double>(graph.edges[edge].width);
    const double whole = model::kAlignElements;
    const double bytes = std::ceil(elements / whole) * whole * sizeof(float);
    change[made[edge] + 1] += bytes;
    change[last_read[edge] + 1] -= bytes;
  }
  double crossing = 0;
  for (double& bytes : change) {
    crossing += bytes;
    bytes = crossing;
  }
  return change;
}

std::vector<int> CheapestCuts(const model::Graph& graph, const std::vector<double>& cut_bytes) {
  const std::vector<int> points = graph.CutPoints();
  std::vector<int> cheapest;
  for (size_t i = 0; i < points.size(); ++i) {
    const double bytes = cut_bytes[points[i]];
    if (i > 0 && cut_bytes[points[i - 1]] <= bytes) continue;
    size_t next = i + 1;
    while (next < points.size() && cut_bytes[points[next]] == bytes) ++next;
    if (next < points.size() && cut_bytes[points[next]] < bytes) continue;
    cheapest.push_back(points[i]);
  }
  // Where every cut costs the same, as in a chain, blocks say where to cut.
  const std::vector<int> blocks = graph.BlockPoints();
  if (cheapest.size() < blocks.size() || cheapest.size() > kCheapestMax) return blocks;
  return cheapest;
}

std::vector<int> EveryCut(const model::Graph& graph) {
  std::vector<int> points = graph.CutPoints();
  if (points.size() > kEveryMax) points.clear();
  return points;
}

}  // namespace longhaul::coordinator
