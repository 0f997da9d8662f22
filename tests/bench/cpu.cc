// One side of `./dev bench cpu`: trains a GPT on one stage of the CPU backend, some steps at a time
// as told on standard input, so that the two sides can take turns.
//
//   longhaul_bench_cpu LAYERS HIDDEN HEADS CONTEXT VOCAB MICRO_BATCH THREADS
//
// prints "ready PARAMETERS FLOPS_PER_STEP", of matrix products only. Each line "train N" is
// answered by "SECONDS CPU_SECONDS LOSS": the time of N steps, that of the process's threads, and
// the last mean loss; "multiply N" by the same for N products and their operations; "memory" by the
// bytes of resident memory at the peak, above what the process had before it built the model.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "compute/backend/backend.h"
#include "compute/ops/linear.h"
#include "compute/stage/stage.h"
#include "model/cost.h"
#include "model/family.h"

namespace longhaul::compute {
namespace {

void Check(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

double Seconds() { return absl::ToDoubleSeconds(RealClock().Now() - absl::UnixEpoch()); }

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

double CpuSeconds() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t PeakResidentBytes() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// A model, a micro-batch of arbitrary tokens, and a step on it.
class Trainer {
 public:
  Trainer(const model::ModelSpec& spec, int64_t micro_batch, int threads)
      : backend_(MakeCpuBackend(threads)), tokens_(micro_batch * spec.context) {
    auto graph = model::BuildGraph(spec);
    Check(graph.status());
    graph_ = *std::move(graph);
    const model::OpRange whole{0, static_cast<int>(graph_.ops.size())};
    auto stage = Stage<float>::Create(graph_, {whole, micro_batch, 1}, *backend_, 1);
    Check(stage.status());
    stage_ = *std::move(stage);
    for (int op = whole.begin; op < whole.end; ++op) {
      const model::OpKind kind = graph_.ops[op].kind;
      if (kind != model::OpKind::kLinear && kind != model::OpKind::kCausalAttention) continue;
      const model::Cost cost = model::OpCost(graph_, op, micro_batch);
      flops_ += cost.forward_flops + cost.backward_flops;
    }
    for (size_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(spec.vocab));
    }
  }

  int64_t parameters() const { return graph_.ParameterCount(); }
  double flops() const { return flops_; }
  Backend& backend() { return *backend_; }

  // Returns the mean loss before the step.
  double Step() {
    const double count = static_cast<double>(tokens_.size());
    double loss = 0;
    Check(stage_->ZeroGradients());
    Check(stage_->Forward({0, tokens_, tokens_, &loss, step_ + 1, 0, true}));
    Check(stage_->Backward(0));
    Check(stage_->SumUses());
    Check(stage_->ApplyAdamW({.learning_rate = 1e-4,
                              .weight_decay = 0.1,
                              .gradient_scale = 1 / count,
                              .step = ++step_}));
    return loss / count;
  }

 private:
  std::unique_ptr<Backend> backend_;
  model::Graph graph_;
  std::unique_ptr<Stage<float>> stage_;
  std::vector<int32_t> tokens_;
  double flops_ = 0;
  int64_t step_ = 0;
};

// A product as large as leaves nothing to be gained by size, through the same tiles and threads.
class Product {
 public:
  double Run(Backend& backend) {
    Check(LinearForward<float>(backend, {kExtent, kExtent, kExtent}, a_, b_, {},
                               absl::MakeSpan(result_)));
    return 2.0 * kExtent * kExtent * kExtent;
  }

 private:
  static constexpr int64_t kExtent = 1152;
  std::vector<float> a_ = std::vector<float>(kExtent * kExtent, 0.5f);
  std::vector<float> b_ = a_, result_ = a_;
};

int Main(const std::vector<int64_t>& numbers) {
  const int64_t before = ResidentBytes();
  const model::ModelSpec spec{.layers = numbers[0],
                              .hidden = numbers[1],
                              .heads = numbers[2],
                              .context = numbers[3],
                              .vocab = numbers[4]};
  Trainer trainer(spec, numbers[5], static_cast<int>(numbers[6]));
  std::cout << "ready " << trainer.parameters() << " " << trainer.flops() << std::endl;
  std::string command;
  while (std::cin >> command) {
    if (command == "memory") {
      std::cout << PeakResidentBytes() - before << std::endl;
      continue;
    }
    int64_t count = 0;
    std::cin >> count;
    Product product;
    double result = 0;
    const double start = Seconds(), cpu_start = CpuSeconds();
    for (int64_t i = 0; i < count; ++i) {
      if (command == "train") {
        result = trainer.Step();
      } else {
        result += product.Run(trainer.backend());
      }
    }
    std::cout << Seconds() - start << " " << CpuSeconds() - cpu_start << " " << result << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace longhaul::compute

int main(int argc, char** argv) {
  std::vector<int64_t> numbers;
  for (int i = 1; i < argc; ++i) numbers.push_back(std::atoll(argv[i]));
  if (numbers.size() != 7) {
    std::cerr
        << "usage: longhaul_bench_cpu LAYERS HIDDEN HEADS CONTEXT VOCAB MICRO_BATCH THREADS\n";
    return 2;
  }
  return longhaul::compute::Main(numbers);
}
