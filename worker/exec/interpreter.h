// The interpreter behind StageExecutor: one method for each kind of instruction.
#ifndef LONGHAUL_WORKER_EXEC_INTERPRETER_H_
#define LONGHAUL_WORKER_EXEC_INTERPRETER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/stage/device_array.h"
#include "schedule/groups.h"
#include "worker/exec/gradient_reducer.h"
#include "worker/exec/norms.h"
#include "worker/exec/stage_executor.h"
#include "worker/exec/tensor_port.h"
#include "worker/exec/verdict.h"

namespace longhaul::worker {

// One thread; pointers as StageExecutor's.
class StageExecutor::Interpreter {
 public:
  Interpreter(ExecutorOptions options, compute::Stage<float>* stage, Exchange* exchange,
              const data::Batches* batches, DirectiveBox* directives, Clock* clock);
  // Before anything else: takes the memory that it needs of the stage's device.
  absl::Status Start();

  absl::StatusOr<StepResult> RunStep(int64_t step);
  absl::StatusOr<EvaluationResult> Evaluate(int64_t step);

 private:
  using Instruction = schedule::Instruction;
  using Method = absl::Status (Interpreter::*)(const Instruction&);
  struct Entry {
    schedule::InstructionKind kind;
    Method method;
  };
  static const Entry kMethods[];
  static Method MethodOf(schedule::InstructionKind kind);

  // What one run of a program has come to.
  struct Pass {
    int64_t step = 0;
    bool evaluation = false;
    bool summed = false;                     // SumUses has been called
    int backwards = 0;                       // of this group's micro-batches
    std::vector<double> losses;              // by micro-batch; last stage
    std::vector<ParameterNorm> norms_after;  // of the stages after this one
    Verdict verdict;
    StepTimings timings;
  };

  void CheckOptions() const;
  // Runs the program and waits for all that it has queued and sent.
  absl::Status RunPass(const schedule::Program& program);
  absl::Status RunProgram(const schedule::Program& program);

  absl::Status RecvActivation(const Instruction& instruction);
  absl::Status Forward(const Instruction& instruction);
  absl::Status SendActivation(const Instruction& instruction);
  absl::Status RecvGradient(const Instruction& instruction);
  absl::Status Backward(const Instruction& instruction);
  absl::Status SendGradient(const Instruction& instruction);
  absl::Status ReduceGradients(const Instruction& instruction);
  absl::Status ReduceLosses(const Instruction& instruction);
  absl::Status BroadcastTiedSum(const Instruction& instruction);
  absl::Status BroadcastVerdict(const Instruction& instruction);
  absl::Status SendTied(const Instruction& instruction);
  absl::Status RecvTiedGradient(const Instruction& instruction);
  absl::Status RecvTiedSum(const Instruction& instruction);
  absl::Status RecvNorms(const Instruction& instruction);
  absl::Status SendNorms(const Instruction& instruction);
  absl::Status DecideVerdict(const Instruction& instruction);
  absl::Status RecvVerdict(const Instruction& instruction);
  absl::Status SendVerdict(const Instruction& instruction);
  absl::Status OptimizerStep(const Instruction& instruction);

  // Runs operators; the device's time counts where they are only queued.
  absl::Status Compute(absl::FunctionRef<absl::Status()> operators);
  // Backward of a micro-batch into the accumulators, which its stage's replicas sum from the step's
  // last one on.
  absl::Status AddGradients(int slot);
  // Once a step, before anything reads a whole gradient.
  absl::Status SumUses();
  // This stage's norms, then those of the stages after it.
  absl::StatusOr<std::vector<ParameterNorm>> NormsFromHere();

  // The group at the other end of a send or receive, and the key of its frame.
  int PeerOf(const Instruction& instruction) const;
  FrameKey KeyOf(const Instruction& instruction, uint32_t index = 0) const;
  absl::Status Send(const Instruction& instruction, const compute::DeviceSpan& values,
                    uint32_t index = 0);
  absl::Status Receive(const Instruction& instruction, const compute::DeviceSpan& values,
                       uint32_t index = 0);
  absl::StatusOr<std::vector<double>> ReceiveDoubles(const Instruction& instruction);
  absl::Time Deadline() const { return clock_->Now() + options_.wait_max; }
  // Of a global batch; not all need be targets.
  int64_t TokensMax() const { return options_.spec->train.global_batch * options_.graph->context; }

  // The spans of the accumulators of tied parameters that the first and the last stage share.
  std::vector<absl::Span<float>> FindTiedGradients() const;

  bool is_first() const { return options_.stage == 0; }
  bool is_last() const { return options_.stage == options_.shape.stages - 1; }
  bool is_leader() const { return options_.replica == 0; }
  const schedule::Groups& groups() const {
    return pass_.evaluation ? evaluation_groups_ : training_groups_;
  }
  int SlotOf(const Instruction& instruction) const { return slots_.Of(instruction.micro_batch); }
  // Of the losses, in micro-batch order whoever computed them.
  double LossSum() const;

  const ExecutorOptions options_;
  compute::Stage<float>* const stage_;
  Exchange* const exchange_;
  const data::Batches* const batches_;
  DirectiveBox* const directives_;
  Clock* const clock_;
  const schedule::Groups training_groups_, evaluation_groups_;
  const std::string name_;  // "stage 1 replica 2"
  const NormsLayout norms_layout_;
  std::unique_ptr<compute::DeviceTimer> timer_;  // null on the CPU
  std::unique_ptr<GradientReducer> reducer_;     // null: one replica
  std::vector<absl::Span<float>> tied_gradients_;
  compute::DeviceArray<float> tied_received_;  // first stage: the head use's accumulator as it came
  std::vector<int32_t> tokens_, targets_;      // of one micro-batch; first and last stage
  std::vector<double> sums_of_squares_;        // by position in the stage's parameters
  schedule::SlotMap slots_;                    // of the program that runs
  Pass pass_;
  std::unique_ptr<TensorPort> port_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_INTERPRETER_H_
