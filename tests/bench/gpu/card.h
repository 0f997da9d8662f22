// What the check must know of the card beside what the backend offers.
#ifndef LONGHAUL_TESTS_BENCH_GPU_CARD_H_
#define LONGHAUL_TESTS_BENCH_GPU_CARD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace longhaul::gpu_check {

struct Card {
  std::string name;
  int64_t free_bytes = 0, total_bytes = 0;
};

// Card number `device` now.
absl::StatusOr<Card> CardNow(int device);

// Peak rate of bf16 products with fp32 sums, without sparsity, of a card of that name, as its
// maker's data sheet says it, in FLOP/s; 0 where the name is not known.
double PeakRate(absl::string_view name);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_CARD_H_
