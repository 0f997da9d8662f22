// Private to timeline.cc: the programs of all groups on one time line, event by event.
#ifndef LONGHAUL_SCHEDULE_SIMULATION_H_
#define LONGHAUL_SCHEDULE_SIMULATION_H_

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/groups.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace longhaul::schedule {

// Programs and costs must have been checked and outlive it; `shape` is ShapeOf the programs. Used
// once.
class Simulation {
 public:
  Simulation(const std::vector<Program>& programs, const Shape& shape, const TimelineCosts& costs,
             int steps);

  // FailedPrecondition when groups wait for each other for ever.
  absl::StatusOr<Timeline> Run();

 private:
  enum class Doing { kBetween, kWorking, kWaiting, kFinished };
  struct GroupState {
    size_t place = 0;  // of the instruction in its program
    int step = 0;
    Doing doing = Doing::kBetween;
    double start = 0;  // of the instruction
    double next = 0;   // working: when done at the present rate; waiting: when the frame arrives
  };
  struct HostState {
    double active_threads = 0;
    double rate = 1;  // of full speed
  };

  // Executes the group's instructions from `now` on until one takes time or waits.
  void GoOn(int group, double now);
  // Begins the group's instruction; true when it is also at its end.
  bool Begin(int group, double now);
  // What the group waits for is there; true when it takes no more time (decoding, reducing).
  bool Arrive(int group, double now);
  void End(int group, double now);
  // Of the frame that the group's receive needs, or of the last replica at its collective; infinite
  // while nobody has sent it or one has not come.
  double ArrivalOf(int group) const;
  void Post(int group, double now);

  // The group has come to its collective: when it is the last, the others learn.
  void Come(int group, double now);

  // False when there is no work to do, else the group works from `now` on.
  bool Work(int group, double seconds, double now);
  void StopWork(int group, double now);
  // The threads that work on the host have changed: those groups go on at another rate.
  void SetRate(int host, double now);

  const Instruction& InstructionOf(int group) const;

  const std::vector<Program>& programs_;
  const TimelineCosts& costs_;
  const int steps_;
  const Groups groups_;
  std::vector<GroupState> states_;
  std::vector<HostState> hosts_;
  std::map<std::pair<int, int>, double> path_free_;  // by sending and receiving stage
  // By sending group, kind of the send, step and micro-batch.
  std::map<std::tuple<int, InstructionKind, int, int>, double> arrivals_;
  // By stage, kind and step: how many groups have come to the collective, the last of them when.
  struct Meeting {
    int come = 0;
    double last = 0;
  };
  std::map<std::tuple<int, InstructionKind, int>, Meeting> meetings_;
  Timeline timeline_;
};

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_SIMULATION_H_
