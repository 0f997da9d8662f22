#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "tests/bench/gpu/report.h"
#include "tests/bench/gpu/trainer.h"
#include "tests/bench/gpu/training_part.h"

namespace longhaul::gpu_check {
namespace {

struct Course {
  model::ModelSpec spec;
  int64_t micro_batch;
  int steps;
  int window;  // losses are compared as means over so many steps
};

Course CourseOf(bool tiny) {
  if (tiny) {
    return {{.layers = 1, .hidden = 16, .heads = 2, .context = 16, .vocab = 16}, 2, 12, 4};
  }
  return {{.layers = 4, .hidden = 128, .heads = 4, .context = 64, .vocab = 64}, 16, 200, 20};
}

// Sequences in which the next token is one of four that the last one decides: something to learn,
// down to a loss of log 4.
TokenBatch Sequences(const Course& course, int step) {
  TokenBatch batch;
  for (int64_t sequence = 0; sequence < course.micro_batch; ++sequence) {
    int64_t token = sequence * 13 % course.spec.vocab;
    for (int64_t t = 0; t < course.spec.context; ++t) {
      const uint32_t choice =
          RandomBits(1, RandomStream::kBatch, static_cast<uint32_t>(step),
                     static_cast<uint32_t>(sequence), static_cast<uint64_t>(t))[0] &
          3;
      batch.tokens.push_back(static_cast<int32_t>(token));
      token = (5 * token + 17 + choice) % course.spec.vocab;
      batch.targets.push_back(static_cast<int32_t>(token));
    }
  }
  return batch;
}

absl::StatusOr<std::vector<double>> Losses(const Course& course, compute::Backend& backend,
                                           model::Precision precision) {
  LH_ASSIGN_OR_RETURN(const auto trainer, Trainer::Make({.spec = course.spec,
                                                         .micro_batch = course.micro_batch,
                                                         .precision = precision,
                                                         .learning_rate = 3e-3},
                                                        backend));
  std::vector<double> losses;
  for (int step = 0; step < course.steps; ++step) {
    LH_ASSIGN_OR_RETURN(losses.emplace_back(), trainer->Step({Sequences(course, step)}));
  }
  return losses;
}

// Sums over consecutive steps.
std::vector<double> Windows(const std::vector<double>& losses, int window) {
  std::vector<double> sums;
  for (size_t end = static_cast<size_t>(window); end <= losses.size(); ++end) {
    sums.push_back(0);
    for (size_t i = end - static_cast<size_t>(window); i < end; ++i) sums.back() += losses[i];
  }
  return sums;
}

// Twice to ten times what PyTorch shows for these steps by itself on a CPU, the worst of three
// seeds: bf16 is 0.013 apart from fp32 while the loss falls and 0.0003 at the end; fp32 from fp64
// 0.0002 and 0.000002.
struct Limits {
  const char* at_most;
  const char* at_the_end;
};
constexpr Limits kFloatLimits = {"<= 0.001", "<= 0.0001"};
constexpr Limits kBFloat16Limits = {"<= 0.03", "<= 0.003"};

void PrintDistance(const Course& course, model::Precision precision,
                   const std::vector<double>& card, const std::vector<double>& cpu,
                   const Limits& limits) {
  const std::vector<double> a = Windows(card, course.window), b = Windows(cpu, course.window);
  double apart = 0;
  for (size_t i = 0; i < b.size(); ++i) apart = std::max(apart, std::abs(a[i] / b[i] - 1));
  PrintRow("losses",
           absl::StrCat(course.steps, " steps, ", model::NameOf(precision), " against the CPU"),
           {{"first", card.front()},
            {"last", a.back() / course.window},
            {"CPU's last", b.back() / course.window},
            {"apart at most", apart, limits.at_most},
            {"at the end", std::abs(a.back() / b.back() - 1), limits.at_the_end}});
}

}  // namespace

absl::Status CheckLosses(compute::Backend& backend, bool tiny) {
  using model::Precision;
  const Course course = CourseOf(tiny);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::unique_ptr<compute::Backend> cpu = compute::MakeCpuBackend(std::min(cores, 8));
  LH_ASSIGN_OR_RETURN(const auto expected, Losses(course, *cpu, Precision::kFloat32));
  LH_ASSIGN_OR_RETURN(const auto in_floats, Losses(course, backend, Precision::kFloat32));
  PrintDistance(course, Precision::kFloat32, in_floats, expected, kFloatLimits);
  if (!backend.has_bfloat16()) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const auto in_bfloat16, Losses(course, backend, Precision::kBFloat16));
  PrintDistance(course, Precision::kBFloat16, in_bfloat16, expected, kBFloat16Limits);
  return absl::OkStatus();
}

}  // namespace longhaul::gpu_check
