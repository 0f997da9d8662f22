// One device group in a replay: what its slots, buffers and gradients hold, and the rules that each
// instruction must find fulfilled.
#ifndef LONGHAUL_SCHEDULE_REPLAY_GROUP_H_
#define LONGHAUL_SCHEDULE_REPLAY_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/program.h"

namespace longhaul::schedule {

// The buffers are those of execution: an activation lives in the slot of its micro-batch until
// Backward (in an evaluation: until it is sent, on the last stage until Forward ends); the gradient
// to send and the gradient received are one buffer each, which the next Forward or Backward
// overwrites. Every instruction is one that the group must have, and occurs once (checked before).
class ReplayGroup {
 public:
  // `program` and `shape` must outlive the object; `micro_batches` are the group's.
  ReplayGroup(const Program& program, const Shape& shape, std::vector<int> micro_batches,
              bool evaluation);

  // Executes the instruction. Empty, or what rule it breaks; the state is then undefined.
  std::string Execute(const Instruction& instruction);

  // Forgets the step. Every slot must be free: what still occupies one is the answer, else empty.
  std::string EndStep();

 private:
  enum class Phase : uint8_t { kAbsent, kReceived, kForwarded, kDone };

  std::string RecvActivation(int m);
  std::string Forward(int m);
  std::string SendActivation(int m);
  std::string RecvGradient(int m);
  std::string Backward(int m);
  std::string SendGradient(int m);
  std::string OnceAStep(InstructionKind kind);

  std::string Occupy(int m);
  void Free(int m) { slot_owner_[slots_.Of(m)] = kNobody; }
  bool Done(InstructionKind kind) const { return done_[static_cast<size_t>(kind)]; }
  bool last() const { return program_.stage == shape_.stages - 1; }

  static constexpr int kNobody = -1;

  const Program& program_;
  const Shape& shape_;
  const bool evaluation_;
  const SlotMap slots_;
  const std::vector<int> own_;          // micro-batches, ascending
  std::vector<int> slot_owner_;         // micro-batch in each slot
  std::vector<Phase> phases_;           // by micro-batch
  int received_gradient_of_ = kNobody;  // micro-batch whose gradient waits for Backward
  int gradient_to_send_of_ = kNobody;   // micro-batch whose input gradient is still there
  size_t backwards_ = 0;                // of its micro-batches
  std::vector<bool> done_;              // once-a-step kinds, by kind
};

}  // namespace longhaul::schedule

#endif  // LONGHAUL_SCHEDULE_REPLAY_GROUP_H_
