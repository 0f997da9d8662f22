// Which runs of units the memory of a stage's node holds.
#ifndef LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_
#define LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_

#include <cstdint>
#include <vector>

#include "coordinator/plan/cost_model.h"

namespace longhaul::coordinator {

// One stage: its node's memory and the micro-batches it keeps.
struct StageRoom {
  int64_t memory_bytes = 0;
  int slots = 0;
};

// Where units are alike, a range needs more memory the longer it is, so the longest that fits is
// found once by bisection, and a question costs no more than a comparison.
class MemoryFits {
 public:
  // Keeps references to `units` and `memory`, which must outlive it.
  MemoryFits(const Units& units, MemoryModel& memory, std::vector<StageRoom> stages);
  // Whether any partition fits, at the cost of a comparison for each stage; true where units
  // differ, which only trying can tell.
  bool MayFit() const;
  bool operator()(int stage, int begin, int end) const;

 private:
  struct Longest {
    int from_first = 0;  // units, the first among them but not the last
    int inner = 0;       // neither
    int to_last = 0;     // the last but not the first
  };
  bool Computed(const StageRoom& room, int begin, int end) const;
  Longest LongestOf(const StageRoom& room) const;

  const Units& units_;
  MemoryModel& memory_;
  std::vector<StageRoom> stages_;
  std::vector<Longest> longest_;  // by stage; empty where units differ
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_PLAN_MEMORY_FITS_H_
