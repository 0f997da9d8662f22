// The part about operators: how far from the CPU's results, and how near to the card's rates.
#ifndef LONGHAUL_TESTS_BENCH_GPU_OPERATOR_PART_H_
#define LONGHAUL_TESTS_BENCH_GPU_OPERATOR_PART_H_

#include "compute/backend/backend.h"
#include "tests/bench/gpu/models.h"

namespace longhaul::gpu_check {

// Prints a row for each operator: its error in fp32 and in bf16, norm-wise, at the reduced shape;
// microseconds and the share of the measured rate of copies or of products at the full one, in
// bf16 where the backend has it.
void CheckOperators(compute::Backend& card, const CheckedModel& model, const Effort& effort);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_OPERATOR_PART_H_
