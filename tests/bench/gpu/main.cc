// What tools/gpu_check/run.sh runs on a card: one part of the check.
//
//   longhaul_bench_gpu card | operators MODEL | train MODEL | losses   [--tiny]
//
// MODEL is gpt2 or llama. Prints lines for run.sh (report.h). Exits with 77 and the reason if there
// is no card to run on, with 1 and the reason if something went wrong. --tiny: shapes for the
// emulation.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/device_facts.h"
#include "tests/bench/gpu/operator_part.h"
#include "tests/bench/gpu/report.h"
#include "tests/bench/gpu/training_part.h"

namespace longhaul::gpu_check {
namespace {

constexpr int kSkipped = 77;  // by convention of automake and ctest
constexpr int kDevice = 0;    // CUDA_VISIBLE_DEVICES chooses another

int Usage() {
  std::fprintf(stderr,
               "usage: longhaul_bench_gpu card | operators MODEL | train MODEL | losses "
               "[--tiny]\nMODEL is gpt2 or llama\n");
  return 2;
}

// A note for people, and the free MiB for scripts.
absl::Status PrintCard(compute::Backend& backend) {
  LH_ASSIGN_OR_RETURN(const compute::CudaDeviceFacts card, compute::ReadCudaDevice(kDevice));
  LH_ASSIGN_OR_RETURN(const compute::CudaMemory memory, compute::ReadCudaMemory(kDevice));
  PrintNote(absl::StrCat("card: ", card.name, ", ", memory.free_bytes >> 20, " of ",
                         memory.total_bytes >> 20, " MiB free; ", backend.numeric_class()));
  std::printf("free\t%lld\n", static_cast<long long>(memory.free_bytes >> 20));
  return absl::OkStatus();
}

absl::Status Run(compute::Backend& backend, const std::string& part,
                 const std::optional<CheckedModel>& model, bool tiny) {
  if (part == "card") return PrintCard(backend);
  if (part == "losses") return CheckLosses(backend, tiny);
  if (part == "train") return CheckTraining(backend, kDevice, *model, tiny);
  CheckOperators(backend, *model, EffortOf(tiny));
  return absl::OkStatus();
}

int Main(std::vector<std::string> words) {
  const bool tiny = !words.empty() && words.back() == "--tiny";
  if (tiny) words.pop_back();
  if (words.empty()) return Usage();
  const bool of_model = words[0] == "operators" || words[0] == "train";
  const bool known = of_model || words[0] == "card" || words[0] == "losses";
  if (!known || words.size() != (of_model ? 2 : 1)) return Usage();
  std::optional<CheckedModel> model;
  if (of_model) model = FindModel(words[1], tiny);
  if (of_model && !model.has_value()) return Usage();

  compute::SetCudaEnvironment();
  const auto backend = compute::MakeCudaBackend(kDevice, RealClock());
  if (!backend.ok()) {
    std::fprintf(stderr, "no CUDA device: %s\n", std::string(backend.status().message()).c_str());
    return kSkipped;
  }
  const absl::Status ran = Run(**backend, words[0], model, tiny);
  if (ran.ok()) return 0;
  std::fprintf(stderr, "%s\n", ran.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace longhaul::gpu_check

int main(int argc, char** argv) { return longhaul::gpu_check::Main({argv + 1, argv + argc}); }
