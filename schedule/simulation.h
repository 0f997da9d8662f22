// Private to timeline.cc: the programs of all stages on one time line, event by event.
#ifndef LONGHAUL_SCHEDULE_SIMULATION_H_
#define LONGHAUL_SCHEDULE_SIMULATION_H_

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/instruction_kind.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace longhaul::schedule {

// Programs and costs must have been checked and outlive it. Used once.
class Simulation {
 public:
  Simulation(const std::vector<Program>& programs, const TimelineCosts& costs, int steps);

  // FailedPrecondition when stages wait for each other for ever.
  absl::StatusOr<Timeline> Run();

 private:
  enum class Doing { kBetween, kWorking, kWaiting, kFinished };
  struct StageState {
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

  // Executes the stage's instructions from `now` on until one takes time or waits.
  void GoOn(int stage, double now);
  // Begins the stage's instruction; true when it is also at its end.
  bool Begin(int stage, double now);
  // The frame that the stage waits for is there; true when decoding takes no time.
  bool Arrive(int stage, double now);
  void End(int stage, double now);
  // Of the frame that the stage's receive needs; infinite while nobody has sent it.
  double ArrivalOf(int stage) const;
  void Post(int stage, double now);

  // False when there is no work to do, else the stage works from `now` on.
  bool Work(int stage, double seconds, double now);
  void StopWork(int stage, double now);
  // The threads that work on the host have changed: those stages go on at another rate.
  void SetRate(int host, double now);

  const Instruction& InstructionOf(int stage) const;
  int PeerOf(int stage) const;

  const std::vector<Program>& programs_;
  const TimelineCosts& costs_;
  const int steps_;
  std::vector<StageState> stages_;
  std::vector<HostState> hosts_;
  std::map<std::pair<int, int>, double> path_free_;  // by sending and receiving stage
  // By sending stage, kind of the send, step and micro-batch.
  std::map<std::tuple<int, InstructionKind, int, int>, double> arrivals_;
  Timeline timeline_;
};

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_SIMULATION_H_
