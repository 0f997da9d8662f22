// For tests: all stages of a model in one process, driven by hand, with memory copies for links.
#ifndef LONGHAUL_COMPUTE_STAGE_TESTING_IN_PROCESS_PIPELINE_H_
#define LONGHAUL_COMPUTE_STAGE_TESTING_IN_PROCESS_PIPELINE_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compute/stage/stage.h"
#include "model/graph.h"

namespace longhaul::compute {

struct TestBatch {
  std::vector<int32_t> tokens, targets;
};

enum class TestOrder { kOneByOne, kGpipe };  // kGpipe: all forwards, then all backwards

// For backends whose memory is the host's: the CPU and emulated CUDA. Errors end the test.
template <typename T>
class InProcessPipeline {
 public:
  // `cuts`: cut points between stages, ascending.
  InProcessPipeline(const model::Graph& graph, std::vector<int> cuts, int64_t micro_batch,
                    int slots, Backend& backend, uint64_t seed, bool recompute = false,
                    model::Precision precision = model::Precision::kFloat32)
      : graph_(graph), micro_batch_(micro_batch), slots_(slots) {
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(static_cast<int>(graph.ops.size()));
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      StageOptions options{{cuts[i], cuts[i + 1]}, micro_batch, slots, recompute};
      options.precision = precision;
      auto stage = Stage<T>::Create(graph, options, backend, seed);
      LH_CHECK(stage.ok(), stage.status().ToString());
      stages_.push_back(*std::move(stage));
      Settle(*stages_.back());
    }
  }

  Stage<T>& stage(int i) { return *stages_[i]; }
  Stage<T>& last() { return *stages_.back(); }

  // Training; the micro-batch is number `m` of step `step`.
  double Forward(int slot, const TestBatch& batch, int64_t step = 1, int64_t m = 0) {
    double loss_sum = 0;
    for (size_t i = 0; i < stages_.size(); ++i) {
      Stage<T>& stage = *stages_[i];
      if (i > 0) Copy(stages_[i - 1]->output(slot), stage.input(slot));
      const auto tokens = stage.is_first() ? absl::MakeConstSpan(batch.tokens) : kNoIntegers;
      const auto targets = stage.is_last() ? absl::MakeConstSpan(batch.targets) : kNoIntegers;
      Check(stage.Forward({slot, tokens, targets, &loss_sum, step, m * micro_batch_, true}));
      Settle(stage);
    }
    return loss_sum;
  }

  void Backward(int slot) {
    for (size_t i = stages_.size(); i-- > 0;) {
      Check(stages_[i]->Backward(slot));
      Settle(*stages_[i]);
      if (i > 0) Copy(stages_[i]->input_gradient(), stages_[i - 1]->output_gradient());
    }
  }

  // Zeroes the gradients, runs all micro-batches, sums the uses. Returns the loss of each.
  std::vector<double> Accumulate(const std::vector<TestBatch>& batches, TestOrder order,
                                 int64_t step = 1) {
    for (auto& stage : stages_) Check(stage->ZeroGradients());
    std::vector<double> losses;
    for (size_t m = 0; m < batches.size(); ++m) {
      const int slot = static_cast<int>(m) % slots_;
      losses.push_back(Forward(slot, batches[m], step, static_cast<int64_t>(m)));
      if (order == TestOrder::kOneByOne) Backward(slot);
    }
    if (order == TestOrder::kGpipe) {
      for (size_t m = 0; m < batches.size(); ++m) Backward(static_cast<int>(m) % slots_);
    }
    for (auto& stage : stages_) {
      Check(stage->SumUses());
      Settle(*stage);
    }
    SumUsesAcrossStages();
    return losses;
  }

  // Norm of all gradients, each parameter counted once.
  double GradientNorm() {
    std::vector<double> sums(graph_.parameters.size(), 0);
    for (auto& stage : stages_) {
      std::vector<double> of_stage(stage->parameters().size());
      Check(stage->GradientSumsOfSquares(absl::MakeSpan(of_stage)));
      for (size_t i = 0; i < of_stage.size(); ++i) {
        sums[stage->parameters()[i].index] = of_stage[i];
      }
    }
    double total = 0;
    for (double sum : sums) total += sum;
    return std::sqrt(total);
  }

  void ApplyAdamW(const AdamWStep& step) {
    for (auto& stage : stages_) {
      Check(stage->ApplyAdamW(step));
      Settle(*stage);
    }
  }

  // Of the first stage that holds the parameter.
  absl::Span<T> Weights(int parameter) { return StateOf(parameter).weights; }
  absl::Span<T> FirstMoment(int parameter) { return StateOf(parameter).first_moment; }
  absl::Span<T> SecondMoment(int parameter) { return StateOf(parameter).second_moment; }
  absl::Span<T> Gradient(int parameter) { return AccumulatorsOf(parameter).front(); }

  // Makes a short test sensitive to everything: weights large enough for attention to be uneven,
  // and biases and layer norms that are neither zero nor one.
  void PerturbWeights() {
    for (auto& stage : stages_) {
      for (const StageParameter<T>& held : stage->parameters()) {
        const bool normal = graph_.parameters[held.index].init.kind == model::InitKind::kNormal;
        for (size_t e = 0; e < held.weights.size(); ++e) {
          const int residue = static_cast<int>((e * 37 + 11) % 17) - 8;
          held.weights[e] =
              normal ? 4 * held.weights[e] : static_cast<T>(held.weights[e] + residue / T{80});
        }
      }
      Check(stage->WeightsChanged());
    }
  }

 private:
  static constexpr absl::Span<const int32_t> kNoIntegers = {};

  static void Check(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

  // Device memory is looked at and written here: nothing may be under way.
  static void Settle(Stage<T>& stage) { Check(stage.backend().Synchronize()); }

  static void Copy(absl::Span<const T> from, absl::Span<T> to) {
    LH_CHECK(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }
  static void Copy(const DeviceSpan& from, const DeviceSpan& to) {
    LH_CHECK(from.elements == to.elements && from.element == to.element);
    std::memcpy(to.data, from.data, static_cast<size_t>(from.bytes()));
  }

  const StageParameter<T>& StateOf(int parameter) {
    for (auto& stage : stages_) {
      for (const StageParameter<T>& held : stage->parameters()) {
        if (held.index == parameter) return held;
      }
    }
    LH_CHECK(false, "no stage holds parameter ", parameter);
  }

  // The first accumulator of every stage that has one, in stage order.
  std::vector<absl::Span<T>> AccumulatorsOf(int parameter) {
    std::vector<absl::Span<T>> accumulators;
    for (auto& stage : stages_) {
      for (const StageGradient<T>& gradient : stage->gradients()) {
        if (gradient.use.parameter != parameter) continue;
        accumulators.push_back(gradient.values);
        break;
      }
    }
    return accumulators;
  }

  void SumUsesAcrossStages() {
    for (int parameter : graph_.TiedParameters()) {
      const auto accumulators = AccumulatorsOf(parameter);
      const absl::Span<T> sum = accumulators.front();
      for (size_t i = 1; i < accumulators.size(); ++i) {
        for (size_t e = 0; e < sum.size(); ++e) sum[e] += accumulators[i][e];
      }
      for (size_t i = 1; i < accumulators.size(); ++i) Copy(sum, accumulators[i]);
    }
  }

  const model::Graph& graph_;
  const int64_t micro_batch_;
  const int slots_;
  std::vector<std::unique_ptr<Stage<T>>> stages_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_TESTING_IN_PROCESS_PIPELINE_H_
