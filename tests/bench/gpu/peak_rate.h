// What makers of cards say that they compute.
#ifndef LONGHAUL_TESTS_BENCH_GPU_PEAK_RATE_H_
#define LONGHAUL_TESTS_BENCH_GPU_PEAK_RATE_H_

#include "absl/strings/string_view.h"

namespace longhaul::gpu_check {

// Peak rate of bf16 products with fp32 sums, without sparsity, of a card of that name, as its
// maker's data sheet says it, in FLOP/s; 0 where the name is not known.
double PeakRate(absl::string_view name);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_PEAK_RATE_H_
