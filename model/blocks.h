// Private to model/: the blocks of a stage, between which recomputation keeps activations.
#ifndef LONGHAUL_MODEL_BLOCKS_H_
#define LONGHAUL_MODEL_BLOCKS_H_

#include <vector>

#include "model/graph.h"

namespace longhaul::model {

// Runs of operators of one layer, in order.
std::vector<OpRange> BlocksOf(const Graph& graph, OpRange range);

// Whether a stage with recomputation makes the block's values again: every block but the loss's.
bool IsRecomputed(const Graph& graph, OpRange block);

// By edge: whether it enters the range or leaves one of its blocks and is read afterwards.
std::vector<bool> CrossesBlocks(const Graph& graph, OpRange range);

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_BLOCKS_H_
