// 1f1b over replicas: all groups follow one order of the whole step, and each does its own part of
// it. On stage s, Forward m stands at m and Backward m between m + W_s - 1 and m + W_s, where the
// warm-up W_s is how many micro-batches the stages from s on work on at a time: one for each stage,
// or as many as a stage's replicas take in turn before each has got its next. With one replica each
// this is the published schedule. Since a group never does something before what comes earlier in
// the order, and every Backward m stands later upstream than downstream, nobody waits in a circle.
#include <algorithm>
#include <cstddef>

#include "schedule/generators.h"
#include "schedule/step_parts.h"

namespace longhaul::schedule {
namespace {

// How many consecutive micro-batches the stage's replicas work on at a time.
int AtATime(const Groups& groups, int stage) {
  int gap_max = 1;
  size_t share_max = 1;
  for (int r = 0; r < groups.replicas(stage); ++r) {
    const std::vector<int>& own = groups.MicroBatches(groups.GroupOf(stage, r));
    share_max = std::max(share_max, own.size());
    for (size_t i = 1; i < own.size(); ++i) gap_max = std::max(gap_max, own[i] - own[i - 1]);
  }
  const bool blocks = gap_max == 1 && share_max > 1;
  return blocks ? 1 : std::max(groups.replicas(stage), gap_max);
}

}  // namespace

Program OneFOneBProgram(const Shape& shape, const Groups& groups, int group) {
  const std::vector<int>& own = groups.MicroBatches(group);
  const int stage = groups.stage(group);
  int64_t warm_up = 0;
  for (int s = stage; s < shape.stages; ++s) warm_up += AtATime(groups, s);
  Program program{.stage = stage, .replica = groups.replica(group), .slots = 1, .instructions = {}};
  size_t forwards = 0;
  for (size_t backwards = 0; backwards < own.size(); ++backwards) {
    while (forwards < own.size() && own[forwards] < own[backwards] + warm_up) {
      AppendForward(shape, own[forwards++], program);
    }
    program.slots = std::max(program.slots, static_cast<int>(forwards - backwards));
    AppendBackward(shape, own[backwards], program);
  }
  AppendStepTail(shape, program);
  return program;
}

}  // namespace longhaul::schedule
