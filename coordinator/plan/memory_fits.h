// Which runs of units the memory of a stage's node holds, and whether by recomputation.
#ifndef LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_
#define LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_

#include <cstdint>
#include <vector>

#include "coordinator/plan/cost_model.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

// One stage: its node's memory and the micro-batches it keeps.
struct StageRoom {
  int64_t memory_bytes = 0;
  int slots = 0;
  model::Precision precision = model::Precision::kFloat32;
};

// How a range of units fits: not at all, keeping activations, making them again.
enum class Fit { kNo, kKeeping, kRecomputing };

// Where units repeat and cuts are even, a range needs more memory the longer it is, so the longest
// that fits is found once by bisection, and a question costs no more than a comparison.
class MemoryFits {
 public:
  // Keeps references to `units` and `memory`, which must outlive it.
  MemoryFits(const Units& units, MemoryModel& memory, std::vector<StageRoom> stages,
             run::Recompute recompute);
  // Whether any partition fits, at the cost of a comparison for each stage; true where units
  // differ, which only trying can tell.
  bool MayFit() const;
  // With recomputation only where the run asks for it or, if it may, nothing else fits.
  Fit Of(int stage, int begin, int end) const;

 private:
  struct Longest {
    int from_first = 0;      // units, the first among them but not the last
    std::vector<int> inner;  // those that repeat, by where in the period they begin
    int to_last = 0;         // the last but not the first
  };
  bool Fits(int stage, int begin, int end, bool recompute) const;
  bool Computed(const StageRoom& room, int begin, int end, bool recompute) const;
  Longest LongestOf(const StageRoom& room, bool recompute) const;

  const Units& units_;
  MemoryModel& memory_;
  std::vector<StageRoom> stages_;
  const run::Recompute recompute_;
  std::vector<Longest> longest_[2];  // by recomputation, by stage; empty where units differ
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_
