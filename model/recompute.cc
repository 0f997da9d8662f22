#include <algorithm>

#include "model/blocks.h"
#include "model/buffer_plan.h"
#include "model/op_kinds.h"

namespace longhaul::model {
namespace {

// Appends what backward of one block runs again. `kept`: by edge, whether its value is in the slot.
void AppendRecomputed(const Graph& graph, OpRange block, const std::vector<bool>& kept,
                      std::vector<int>& recomputed) {
  std::vector<bool> wanted(graph.edges.size(), false);
  const size_t first = recomputed.size();
  for (int position = block.end - 1; position >= block.begin; --position) {
    const Op& op = graph.ops[position];
    const OpKindInfo& info = InfoOf(op.kind);
    const bool again = info.statistics != nullptr || (wanted[op.output] && !kept[op.output]) ||
                       (info.backward_reads_output && !kept[op.output]);
    if (again) recomputed.push_back(position);
    if (!again && !info.backward_reads_input) continue;
    for (int edge : op.inputs) wanted[edge] = true;
  }
  std::reverse(recomputed.begin() + static_cast<std::ptrdiff_t>(first), recomputed.end());
}

}  // namespace

std::vector<OpRange> BlocksOf(const Graph& graph, OpRange range) {
  std::vector<OpRange> blocks;
  for (int position = range.begin; position < range.end; ++position) {
    if (blocks.empty() || graph.ops[position].layer != graph.ops[blocks.back().begin].layer) {
      blocks.push_back({position, position});
    }
    blocks.back().end = position + 1;
  }
  return blocks;
}

bool IsRecomputed(const Graph& graph, OpRange block) {
  return graph.ops[block.begin].layer != graph.ops.back().layer;
}

std::vector<bool> CrossesBlocks(const Graph& graph, OpRange range) {
  constexpr int kBefore = -1;
  std::vector<int> block_of_edge(graph.edges.size(), kBefore);
  std::vector<bool> crosses(graph.edges.size(), false);
  const std::vector<OpRange> blocks = BlocksOf(graph, range);
  for (int block = 0; block < static_cast<int>(blocks.size()); ++block) {
    for (int position = blocks[block].begin; position < blocks[block].end; ++position) {
      for (int edge : graph.ops[position].inputs) {
        if (block_of_edge[edge] != block) crosses[edge] = true;
      }
      if (graph.ops[position].output >= 0) block_of_edge[graph.ops[position].output] = block;
    }
  }
  if (!HasLoss(graph, range)) {
    for (int edge : graph.CutEdges(range.end)) crosses[edge] = true;
  }
  return crosses;
}

std::vector<int> RecomputedOps(const Graph& graph, OpRange range) {
  const std::vector<bool> kept = CrossesBlocks(graph, range);
  std::vector<int> recomputed;
  for (const OpRange& block : BlocksOf(graph, range)) {
    if (IsRecomputed(graph, block)) AppendRecomputed(graph, block, kept, recomputed);
  }
  return recomputed;
}

}  // namespace longhaul::model
