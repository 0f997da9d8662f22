// What the card does at its best, and how long a call takes on it.
#ifndef LONGHAUL_TESTS_BENCH_GPU_RATES_H_
#define LONGHAUL_TESTS_BENCH_GPU_RATES_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "compute/backend/backend.h"
#include "tests/bench/gpu/arrays.h"

namespace longhaul::gpu_check {

// How much to do: the emulation takes for one call what a card takes for thousands.
struct Effort {
  int64_t copy_bytes = int64_t{1} << 30;     // of the copy whose rate is the card's
  int64_t extent = 8192;                     // of the product whose rate is the card's
  int64_t flushed_bytes = int64_t{1} << 28;  // written between calls: more than any cache
  int repeats = 20;
};

// Mean seconds of the device for one call, after one that does not count. Caches are cold.
class CallTimer {
 public:
  CallTimer(compute::Backend& backend, const Effort& effort);
  double Seconds(absl::FunctionRef<absl::Status()> call);

 private:
  compute::Backend& backend_;
  const Effort effort_;
  Arrays arrays_;
  absl::Span<char> flushed_;
  std::unique_ptr<compute::DeviceTimer> timer_;
};

struct CardRates {
  double bytes_per_second = 0;  // of a copy within its memory: read + written
  double flops = 0;             // of a large product in T, through the operator
};
template <typename T>
CardRates MeasureCard(compute::Backend& backend, const Effort& effort);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_RATES_H_
