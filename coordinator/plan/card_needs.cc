#include "coordinator/plan/card_needs.h"

#include <algorithm>
#include <set>
#include <string>

#include "model/attention_blocks.h"
#include "model/cost.h"

namespace longhaul::coordinator {
namespace {

constexpr double kTensorsOnTheirWay = 8;
constexpr double kBFloat16Bytes = 2;

double NeededBy(const model::Op& attention, double width, double context, double micro_batch) {
  const double rows = micro_batch * context;
  const double heads = static_cast<double>(attention.heads);
  const bool grouped = attention.kv_heads < attention.heads;
  const double sums =
      rows * (sizeof(float) * (width + heads) + (grouped ? 2 * kBFloat16Bytes * width : 0));
  const double scores = kBFloat16Bytes * rows * context * heads;
  return std::max(sums, std::min<double>(model::kInOrderAttentionBytesMax, sums + scores));
}

double AttentionBytesIn(const model::Graph& graph, int64_t micro_batch, model::Precision of_cards) {
  return of_cards == model::Precision::kBFloat16 ? AttentionBytes(graph, micro_batch) : 0;
}

}  // namespace

double AttentionBytes(const model::Graph& graph, int64_t micro_batch) {
  double most = 0;
  for (const model::Op& op : graph.ops) {
    if (op.kind != model::OpKind::kCausalAttention) continue;
    const double width = static_cast<double>(graph.edges[op.output].width);
    most = std::max(most, NeededBy(op, width, static_cast<double>(graph.context),
                                   static_cast<double>(micro_batch)));
  }
  return most;
}

CardNeeds CardNeedsOf(const Units& units, model::Precision of_cards) {
  return {units.CutBytesMax(), units.TiedBytes(),
          AttentionBytesIn(units.graph(), units.micro_batch(), of_cards)};
}

CardNeeds CardNeedsOf(const model::Graph& graph, const Plan& plan, const run::TrainSpec& train) {
  CardNeeds needs;
  needs.tied_bytes = TiedBytes(graph, plan.stages.front().range, plan.stages.back().range);
  needs.attention_bytes = AttentionBytesIn(graph, train.micro_batch, train.precision);
  for (const StagePlacement& stage : plan.stages) {
    if (stage.range.begin == 0) continue;
    const int64_t bytes = model::BoundaryBytes(graph, stage.range.begin, train.micro_batch);
    needs.cut_bytes_max = std::max(needs.cut_bytes_max, static_cast<double>(bytes));
  }
  return needs;
}

bool SumByNccl(const std::vector<const NodeProfile*>& replicas, bool exact) {
  if (replicas.size() < 2 || exact) return false;
  std::set<std::string> cards;
  for (const NodeProfile* node : replicas) {
    if (node->device_kind == DeviceKind::kCpu) return false;
    if (!node->device_uuid.empty() && !cards.insert(node->device_uuid).second) return false;
  }
  return true;
}

double BytesBeside(const CardNeeds& needs, const StagePosition& position) {
  double bytes = needs.attention_bytes;
  if (position.stages > 1) {
    bytes += kTensorsOnTheirWay * needs.cut_bytes_max;
    if (position.stage == 0) bytes += needs.tied_bytes;
  }
  if (position.sums_by_nccl) bytes += static_cast<double>(kNcclBytes);
  return bytes;
}

int64_t MemoryForStage(const NodeProfile& node, const CardNeeds& needs,
                       const StagePosition& position) {
  if (node.device_kind == DeviceKind::kCpu) return node.memory_bytes;
  const double left = static_cast<double>(node.memory_bytes) - BytesBeside(needs, position);
  return left <= 0 ? 0 : static_cast<int64_t>(left);
}

}  // namespace longhaul::coordinator
