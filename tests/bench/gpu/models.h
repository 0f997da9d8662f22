// The two models that the check trains, at their size and small.
#ifndef LONGHAUL_TESTS_BENCH_GPU_MODELS_H_
#define LONGHAUL_TESTS_BENCH_GPU_MODELS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "model/family.h"
#include "tests/bench/gpu/operators.h"
#include "tests/bench/gpu/rates.h"

namespace longhaul::gpu_check {

struct CheckedModel {
  std::string name;
  model::ModelSpec spec;
  int64_t micro_batch_max = 0;
  double peak_share = 0;  // of the card's peak, to be reached; 0: only shown
  BlockShape full;        // for the rates of operators
  BlockShape reduced;     // for their errors: the CPU's results take a second or two
};

// "gpt2": GPT-2 of 124 M parameters. "llama": 1.3 G parameters, 24 layers, hidden 2048, 16 heads of
// 128, context 2048. `tiny`: of their kind, but for the emulation.
std::optional<CheckedModel> FindModel(absl::string_view name, bool tiny);

Effort EffortOf(bool tiny);

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_MODELS_H_
