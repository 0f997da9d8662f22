// Replays the programs of all device groups together and proves what execution relies on.
#ifndef LONGHAUL_SCHEDULE_REPLAY_H_
#define LONGHAUL_SCHEDULE_REPLAY_H_

#include <vector>

#include "absl/status/status.h"
#include "schedule/program.h"

namespace longhaul::schedule {

struct ReplayOptions {
  int steps = 3;  // consecutive steps, so that what crosses a step boundary is checked too
  // Frames of one kind that a sender may have unacknowledged on one link: a send beyond it waits.
  // 0: the slots of the upstream group's program, as execution uses (LinkWindow).
  // Once-a-step frames always have a window of 1.
  int window = 0;
  bool evaluation = false;  // the programs are of GenerateEvaluationOf, not training programs
};

// Frames of one kind that may be unconsumed on the link between a group and one of the next stage,
// either way: the slots of the upstream group, since each such frame holds one of them. A training
// send therefore never waits; an evaluation send may.
int LinkWindow(const std::vector<Program>& programs, int upstream_group);

// OK, or FailedPrecondition with the group, step and instruction, the grid of all programs with the
// place marked, and what is wrong: a deadlock (every group's wait is named), a receive that nobody
// sends, a frame that nobody receives, compute before its data, a slot used while occupied, a
// micro-batch forgotten, done twice or by the wrong replica, gradients accumulated out of
// micro-batch order, a step applied without a verdict or without the other replicas' gradients. A
// collective is a barrier of the stage's groups.
absl::Status Replay(const std::vector<Program>& programs, const Shape& shape,
                    const ReplayOptions& options = {});

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_REPLAY_H_
