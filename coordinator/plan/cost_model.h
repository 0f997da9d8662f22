// What a job costs before anybody decides who runs it: seconds and memory of every contiguous run
// of the model's units on every node. A unit is what lies between two neighbouring cuts that are
// considered.
#ifndef LONGHAUL_COORDINATOR_PLAN_COST_MODEL_H_
#define LONGHAUL_COORDINATOR_PLAN_COST_MODEL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "coordinator/plan/planner.h"
#include "model/cost.h"
#include "model/graph.h"
#include "model/precision.h"

namespace longhaul::coordinator {

// The model cut at `cuts`, ascending cut points. Keeps a reference to the graph, which must outlive
// it.
class Units {
 public:
  // `cut_bytes`: as CutBytes in cuts.h.
  Units(const model::Graph& graph, int64_t micro_batch, const std::vector<int>& cuts,
        const std::vector<double>& cut_bytes);

  int count() const { return static_cast<int>(positions_.size()) - 1; }
  // Operators of units [begin, end).
  model::OpRange Ops(int begin, int end) const { return {positions_[begin], positions_[end]}; }
  // fp32 bytes of one micro-batch that cross the cut in front of `unit`; 0 < unit < count().
  double CutBytes(int unit) const { return cut_bytes_[unit]; }
  double CutBytesMax() const { return cut_bytes_max_; }
  // Units [1, alike_end()) repeat every period() units, each with parameters of its own: of a range
  // of them only the length counts, and where in the period it begins. period() 0: none do.
  int period() const { return period_; }
  int alike_end() const { return alike_end_; }
  // Whether every cut carries as much.
  bool even_cuts() const { return even_cuts_; }
  // fp32 bytes of the parameters that the first and the last unit share.
  double TiedBytes() const { return tied_bytes_; }

  const model::Graph& graph() const { return graph_; }
  int64_t micro_batch() const { return micro_batch_; }

 private:
  const model::Graph& graph_;
  const int64_t micro_batch_;
  std::vector<int> positions_;     // of the units' first operators, and the end
  std::vector<double> cut_bytes_;  // by unit; 0 in front of the first
  double cut_bytes_max_ = 0;
  double tied_bytes_ = 0;
  int period_ = 0, alike_end_ = 0;
  bool even_cuts_ = true;
};

// fp32 bytes of the tied parameters that both ranges have.
double TiedBytes(const model::Graph& graph, model::OpRange first, model::OpRange last);

// Predicted seconds of units on one node that nobody shares a host with.
struct UnitSeconds {
  double forward = 0;   // one micro-batch
  double backward = 0;  // one micro-batch
  double again = 0;     // one micro-batch: what recomputation adds to backward
  double total() const { return forward + backward; }
};

// An operator takes the longer of its arithmetic at the node's FLOP rate and its traffic at the
// node's memory rate (the roofline, Williams et al. 2009); operators run one after another.
// `of_cards`: the run's train.precision.
class NodeCosts {
 public:
  NodeCosts(const Units& units, const NodeProfile& node, model::Precision of_cards);
  UnitSeconds Seconds(int begin, int end) const;
  UnitSeconds Model() const { return Seconds(0, static_cast<int>(sums_.size()) - 1); }

 private:
  std::vector<UnitSeconds> sums_;  // of the units before
};

// Seconds of one AdamW step of a stage on a node: bound by its memory rate.
double OptimizerSeconds(const model::StageMemory& memory, const NodeProfile& node);

// Memory of stages, each range computed once, and of ranges that are alike only one. Keeps a
// reference to `units`.
class MemoryModel {
 public:
  explicit MemoryModel(const Units& units) : units_(units) {}
  // As model::MemoryOf.
  model::StageMemory Of(int begin, int end, int slots, bool recompute, model::Precision precision);

 private:
  struct Key {
    std::pair<int, int> range;
    bool recompute;
    model::Precision precision;
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.range, key.recompute, key.precision);
    }
  };
  // The first range that is like this one.
  std::pair<int, int> Representative(int begin, int end) const;

  const Units& units_;
  absl::flat_hash_map<Key, model::StageMemory> one_slot_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_COST_MODEL_H_
