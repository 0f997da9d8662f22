#include "worker/exec/testing/gradient_oracle.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "compute/stage/stage.h"
#include "model/family.h"

namespace longhaul::worker {
namespace {

template <typename T>
std::unique_ptr<compute::Stage<T>> WholeModel(const model::Graph& graph, int64_t sequences,
                                              compute::Backend& backend, uint64_t seed) {
  auto stage = compute::Stage<T>::Create(
      graph, {{0, static_cast<int>(graph.ops.size())}, sequences, 1}, backend, seed);
  LH_CHECK(stage.ok(), stage.status().ToString());
  return *std::move(stage);
}

// Initial weights are rounded to floats in a run.
void TakeWeights(compute::Stage<float>& from, compute::Stage<double>& to) {
  LH_CHECK(from.parameters().size() == to.parameters().size());
  for (size_t p = 0; p < from.parameters().size(); ++p) {
    const absl::Span<float> weights = from.parameters()[p].weights;
    std::copy(weights.begin(), weights.end(), to.parameters()[p].weights.begin());
  }
}

void Must(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

}  // namespace

ExactGradient GradientOfOneProcess(const ClusterOptions& options, int64_t step) {
  const run::RunSpec spec = ClusterSpec(options);
  const run::TrainSpec& train = spec.train;
  const auto graph = model::BuildGraph(spec.model);
  LH_CHECK(graph.ok(), graph.status().ToString());
  const ClusterData data(spec, options.data);
  const auto backend = compute::MakeCpuBackend(1);
  const auto stage = WholeModel<double>(*graph, train.global_batch, *backend, train.seed);
  TakeWeights(*WholeModel<float>(*graph, 1, *backend, train.seed), *stage);

  const size_t rows = static_cast<size_t>(train.micro_batch * graph->context);
  std::vector<int32_t> tokens(rows * static_cast<size_t>(train.micro_batches()));
  std::vector<int32_t> targets(tokens.size());
  for (int64_t m = 0; m < train.micro_batches(); ++m) {
    const size_t begin = static_cast<size_t>(m) * rows;
    data.batches().Train(step, m, absl::MakeSpan(tokens).subspan(begin, rows),
                         absl::MakeSpan(targets).subspan(begin, rows));
  }
  Must(stage->ZeroGradients());
  Must(stage->Forward({0, tokens, targets, nullptr, step, 0, true}));
  Must(stage->Backward(0));
  Must(stage->SumUses());
  ExactGradient gradient;
  for (const compute::StageGradient<double>& use : stage->gradients()) {
    // The first use has the sum; emplace leaves it alone at the others.
    gradient.emplace(graph->parameters[static_cast<size_t>(use.use.parameter)].name,
                     std::vector<double>(use.values.begin(), use.values.end()));
  }
  return gradient;
}

double RelativeDifference(const GradientValues& a, const ExactGradient& b) {
  LH_CHECK(a.size() == b.size());
  double difference = 0, norm = 0;
  for (const auto& [name, exact] : b) {
    const std::vector<float>& values = a.at(name);
    LH_CHECK(values.size() == exact.size(), name);
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += (values[i] - exact[i]) * (values[i] - exact[i]);
      norm += exact[i] * exact[i];
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace longhaul::worker
