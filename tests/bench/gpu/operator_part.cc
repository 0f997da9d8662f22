#include "tests/bench/gpu/operator_part.h"

#include <cmath>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/bench/gpu/report.h"

namespace longhaul::gpu_check {
namespace {

using compute::BFloat16;
using Results = std::vector<std::vector<double>>;

// Norm-wise. An output is rounded once, after what it is made of was rounded at most twice: half a
// unit of bf16's last place is 2^-9.
constexpr const char* kFloatError = "<= 1e-05";
constexpr const char* kBFloat16Error = "<= 0.01";

template <typename T>
Results Run(compute::Backend& backend, const OperatorCase<T>& tested, const BlockShape& shape) {
  Arrays arrays(backend);
  const OperatorCall<T> call = tested.prepare(arrays, shape);
  Check(call.run());
  Check(backend.Synchronize());
  Results results;
  for (const auto output : call.outputs) results.push_back(Read(backend, output));
  for (const auto output : call.wide_outputs) results.push_back(Read(backend, output));
  if (call.result != nullptr) results.push_back({*call.result});
  return results;
}

// The largest over the outputs of |actual - expected| / |expected| in the 2-norm.
double Error(const Results& actual, const Results& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = 0, norm = 0;
    for (size_t e = 0; e < expected[i].size(); ++e) {
      difference += std::pow(actual[i][e] - expected[i][e], 2);
      norm += std::pow(expected[i][e], 2);
    }
    const double error = std::sqrt(difference / norm);
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

template <typename T>
void AddRate(compute::Backend& card, const OperatorCase<T>& tested, const BlockShape& shape,
             CallTimer& timer, const CardRates& rates, std::vector<Figure>& figures) {
  Arrays arrays(card);
  const OperatorCall<T> call = tested.prepare(arrays, shape);
  const double seconds = timer.Seconds(call.run);
  figures.push_back({"us", seconds * 1e6});
  if (call.flops > 0) {
    figures.push_back({"of product rate", call.flops / seconds / rates.flops});
  } else {
    figures.push_back({"of copy rate", call.bytes / seconds / rates.bytes_per_second});
  }
}

template <typename T>
std::vector<OperatorCase<T>> CasesOf(const CheckedModel& model) {
  return model.spec.family == "llama" ? LlamaOperators<T>() : GptOperators<T>();
}

// Rates in T.
template <typename T>
void CheckAll(compute::Backend& card, const CheckedModel& model, const Effort& effort) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::unique_ptr<compute::Backend> cpu = compute::MakeCpuBackend(cores);
  const auto in_floats = CasesOf<float>(model);
  const auto in_bfloat16 = CasesOf<BFloat16>(model);
  const auto timed = CasesOf<T>(model);
  const CardRates rates = MeasureCard<T>(card, effort);
  PrintRow("operators", "large copy", {{"GB/s", rates.bytes_per_second / 1e9}});
  PrintRow("operators", "large product", {{"TFLOP/s", rates.flops / 1e12}});
  CallTimer timer(card, effort);
  for (size_t i = 0; i < timed.size(); ++i) {
    const Results expected = Run(*cpu, in_floats[i], model.reduced);
    std::vector<Figure> figures = {
        {"fp32 error", Error(Run(card, in_floats[i], model.reduced), expected), kFloatError}};
    if (card.has_bfloat16()) {
      const Results actual = Run(card, in_bfloat16[i], model.reduced);
      figures.push_back({"bf16 error", Error(actual, expected), kBFloat16Error});
    }
    AddRate(card, timed[i], model.full, timer, rates, figures);
    PrintRow("operators", absl::StrCat(model.name, " ", timed[i].name), figures);
  }
}

}  // namespace

void CheckOperators(compute::Backend& card, const CheckedModel& model, const Effort& effort) {
  if (card.has_bfloat16()) {
    CheckAll<BFloat16>(card, model, effort);
    return;
  }
  PrintNote("operators: the backend has no bf16; rates are those of fp32");
  CheckAll<float>(card, model, effort);
}

}  // namespace longhaul::gpu_check
