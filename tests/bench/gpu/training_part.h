// The parts about training: its speed and memory, and its losses beside the CPU's.
#ifndef LONGHAUL_TESTS_BENCH_GPU_TRAINING_PART_H_
#define LONGHAUL_TESTS_BENCH_GPU_TRAINING_PART_H_

#include "absl/status/status.h"
#include "compute/backend/backend.h"
#include "tests/bench/gpu/models.h"

namespace longhaul::gpu_check {

// Trains with the largest micro-batch that fits card number `device`, of which `backend` is, and
// prints tokens per second, the share of its peak, and memory against MemoryOf. In bf16 where the
// backend has it.
absl::Status CheckTraining(compute::Backend& backend, int device, const CheckedModel& model,
                           bool tiny);

// The same steps of a small model on the card, in bf16 and in fp32, and on the CPU in fp32; prints
// how far the losses are apart.
absl::Status CheckLosses(compute::Backend& backend, bool tiny);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_TRAINING_PART_H_
