// Whole stages on the emulated CUDA device against the CPU: every kind of operator, several cuts
// and recomputation, through the optimizer. In double, where orders of addition do not show, and
// in BFloat16 with the noise that it has.
#include <algorithm>
#include <cmath>

#include "compute/backend/cuda/emulated/machine.h"
#include "compute/stage/testing/in_process_pipeline.h"
#include "compute/stage/testing/test_graphs.h"
#include "compute/testing/op_testing.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

struct Outcome {
  Values losses;
  std::vector<Values> weights;  // after all steps
};

Outcome Train(const model::Graph& graph, Backend& backend, std::vector<int> cuts, bool recompute) {
  constexpr int64_t kMicroBatch = 2;
  InProcessPipeline<double> pipeline(graph, std::move(cuts), kMicroBatch, 2, backend, kSeed,
                                     recompute);
  pipeline.PerturbWeights();
  Outcome outcome;
  for (int step = 1; step <= 3; ++step) {
    const auto losses =
        pipeline.Accumulate(Batches(graph, 2, kMicroBatch), TestOrder::kGpipe, step);
    outcome.losses.insert(outcome.losses.end(), losses.begin(), losses.end());
    AdamWStep adamw{.learning_rate = 1e-2, .weight_decay = 0.1, .step = step};
    adamw.gradient_scale = 1 / pipeline.GradientNorm();
    pipeline.ApplyAdamW(adamw);
  }
  for (int parameter = 0; parameter < static_cast<int>(graph.parameters.size()); ++parameter) {
    const absl::Span<double> weights = pipeline.Weights(parameter);
    outcome.weights.emplace_back(weights.begin(), weights.end());
  }
  return outcome;
}

void ExpectCpuAndCudaAgree(const model::Graph& graph, const std::vector<int>& cuts,
                           bool recompute = false) {
  const Outcome expected = Train(graph, *MakeCpuBackend(1), {}, false);
  const Outcome actual = Train(graph, *TestCudaBackend(), cuts, recompute);
  EXPECT_LE(RelativeError(actual.losses, expected.losses), 1e-12);
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    // Adam divides the rounding noise of gradients that are zero, as a key bias's, by itself.
    const bool zero = graph.parameters[i].name.find("qkv.bias") != std::string::npos ||
                      graph.parameters[i].name.find("c_attn.bias") != std::string::npos;
    if (!zero) {
      EXPECT_LE(RelativeError(actual.weights[i], expected.weights[i]), 1e-9)
          << graph.parameters[i].name;
    }
  }
}

struct FloatOutcome {
  std::vector<double> losses;  // a token, by step
  std::vector<float> weights;  // after all steps
};

FloatOutcome TrainFloats(const model::Graph& graph, Backend& backend, std::vector<int> cuts,
                         model::Precision precision) {
  constexpr int64_t kMicroBatch = 4;
  constexpr int kSteps = 25;
  InProcessPipeline<float> pipeline(graph, std::move(cuts), kMicroBatch, 1, backend, kSeed, false,
                                    precision);
  const std::vector<TestBatch> batches = Batches(graph, 1, kMicroBatch);
  const double tokens = static_cast<double>(kMicroBatch * graph.context);
  FloatOutcome outcome;
  for (int step = 1; step <= kSteps; ++step) {
    outcome.losses.push_back(pipeline.Accumulate(batches, TestOrder::kOneByOne, step)[0] / tokens);
    AdamWStep adamw{.learning_rate = 5e-3, .weight_decay = 0.1, .step = step};
    adamw.gradient_scale = std::min(1.0, 1 / pipeline.GradientNorm());
    pipeline.ApplyAdamW(adamw);
  }
  for (int parameter = 0; parameter < static_cast<int>(graph.parameters.size()); ++parameter) {
    const absl::Span<float> weights = pipeline.Weights(parameter);
    outcome.weights.insert(outcome.weights.end(), weights.begin(), weights.end());
  }
  return outcome;
}

// A batch is learned by heart as with floats on the CPU. The noise is measured by the first loss:
// each rounding is off by up to 1/512, and that of gradients adds up over the steps.
void ExpectBFloat16Learns(const model::Graph& graph, const std::vector<int>& cuts) {
  const FloatOutcome expected =
      TrainFloats(graph, *MakeCpuBackend(1), {}, model::Precision::kFloat32);
  const FloatOutcome actual =
      TrainFloats(graph, *TestCudaBackend(), cuts, model::Precision::kBFloat16);
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  EXPECT_LT(expected.losses.back(), 0.9 * expected.losses.front());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 0.01 * expected.losses[0])
        << "step " << i + 1;
  }
  // Steps smaller than a BFloat16 shows are kept.
  const auto is_rounded = [](float weight) { return BFloat16(weight) == weight; };
  EXPECT_LT(std::count_if(actual.weights.begin(), actual.weights.end(), is_rounded),
            static_cast<std::ptrdiff_t>(actual.weights.size() / 20));
}

TEST(CudaStageTest, BFloat16) {
  ExpectBFloat16Learns(EveryKindGraph(true), {});
  const model::Graph graph = Gpt2(1, 24, 3, true);
  ExpectBFloat16Learns(graph, {graph.CutPoints().at(3)});
}

// Trains in bf16 with NaN between the rows of logits, or what is there by itself: losses of two
// steps and the weights after them.
std::vector<double> TrainWithLogitsApart(bool poisoned) {
  constexpr int64_t kMicroBatch = 2, kPitch = 64;
  const model::Graph graph = Gpt2(1, 24, 3, true);
  const auto backend = TestCudaBackend();
  InProcessPipeline<float> pipeline(graph, {graph.CutPoints().at(3)}, kMicroBatch, 1, *backend,
                                    kSeed, false, model::Precision::kBFloat16);
  const absl::Span<BFloat16> logits = pipeline.last().logits().As<BFloat16>();
  EXPECT_EQ(static_cast<int64_t>(logits.size()), kMicroBatch * graph.context * kPitch);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(logits.data()) % 16, 0);
  const BFloat16 between(poisoned ? NAN : 0.F);
  const auto for_each_between = [&](auto visit) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (static_cast<int64_t>(i) % kPitch >= graph.vocab) visit(logits[i]);
    }
  };
  if (poisoned) for_each_between([&](BFloat16& value) { value = between; });
  std::vector<double> outcome;
  const auto run = [&](int step) {
    const auto losses =
        pipeline.Accumulate(Batches(graph, 2, kMicroBatch), TestOrder::kOneByOne, step);
    outcome.insert(outcome.end(), losses.begin(), losses.end());
    pipeline.ApplyAdamW({.learning_rate = 1e-2, .step = step});
  };
  run(1);
  run(2);
  for (int parameter = 0; parameter < static_cast<int>(graph.parameters.size()); ++parameter) {
    const absl::Span<float> weights = pipeline.Weights(parameter);
    outcome.insert(outcome.end(), weights.begin(), weights.end());
  }
  for_each_between([&](BFloat16& value) { EXPECT_EQ(value.bits, between.bits); });
  return outcome;
}

TEST(CudaStageTest, NothingReadsOrWritesBetweenTheRowsOfLogits) {
  EXPECT_EQ(TrainWithLogitsApart(true), TrainWithLogitsApart(false));
}

// The search looks at all of the logits' memory.
TEST(CudaStageTest, TheSearchForWhatIsNoNumberTakesLogitsWithAPitch) {
  const model::Graph graph = Gpt2(1, 24, 3, true);
  const auto backend = TestCudaBackend();
  InProcessPipeline<float> pipeline(graph, {}, 2, 1, *backend, kSeed, false,
                                    model::Precision::kBFloat16);
  const auto search = [&] {
    NotFinite found;
    pipeline.last().LookForNotFinite(&found);
    pipeline.Accumulate(Batches(graph, 1, 2), TestOrder::kOneByOne);
    pipeline.last().LookForNotFinite(nullptr);
    return found;
  };
  const NotFinite nowhere = search();
  EXPECT_EQ(nowhere.forward, -1);
  EXPECT_EQ(nowhere.backward, -1);
  pipeline.Weights(graph.ops[graph.ops.size() - 3].parameters[0])[0] = NAN;
  ASSERT_TRUE(pipeline.last().WeightsChanged().ok());
  EXPECT_EQ(search().forward, static_cast<int>(graph.ops.size()) - 3);
}

TEST(CudaStageTest, EveryKindOfOperator) { ExpectCpuAndCudaAgree(EveryKindGraph(true), {}); }

TEST(CudaStageTest, SeveralStages) {
  const model::Graph graph = Gpt2(2, 24, 3, true);
  ExpectCpuAndCudaAgree(graph, {graph.CutPoints().at(1)}, true);
}

TEST(CudaStageTest, MoreThanATile) {
  ExpectCpuAndCudaAgree(Gpt2(1, 24, 3, false, kLongContext), {});
}

TEST(CudaStageTest, MicroBatchesAreRecordedAndRepeatedBitForBit) {
  constexpr int kSlots = 2;
  const model::Graph graph = Gpt2(2, 24, 3, true);
  const auto backend = TestCudaBackend();
  InProcessPipeline<float> pipeline(graph, {}, 2, kSlots, *backend, kSeed);
  const int64_t before = emulated::TheCounts().graphs;
  std::vector<double> first_losses;
  double first_norm = 0;
  for (int step = 1; step <= 4; ++step) {
    const std::vector<double> losses =
        pipeline.Accumulate(Batches(graph, kSlots, 2), TestOrder::kGpipe, step);
    const double norm = pipeline.GradientNorm();
    if (step == 1) {
      first_losses = losses;
      first_norm = norm;
    }
    EXPECT_EQ(losses, first_losses) << "step " << step;
    EXPECT_EQ(norm, first_norm) << "step " << step;
    // Forward and backward of each slot, once scratch memory grows no more.
    const int64_t graphs = emulated::TheCounts().graphs - before;
    EXPECT_TRUE(step == 2 || graphs == (step == 1 ? 0 : 2 * kSlots)) << graphs;
  }
}

// Though the device has not read them yet.
TEST(CudaStageTest, TokensAreTheCallersAgainAtOnce) {
  const model::Graph graph = Gpt2(1, 24, 3, true);
  const auto backend = TestCudaBackend();
  InProcessPipeline<float> pipeline(graph, {}, 2, 1, *backend, kSeed);
  TestBatch batch = Batches(graph, 1, 2)[0];
  const double expected = pipeline.Forward(0, batch);
  double loss_sum = 0;
  ASSERT_TRUE(pipeline.stage(0)
                  .Forward({0, absl::MakeConstSpan(batch.tokens),
                            absl::MakeConstSpan(batch.targets), &loss_sum, 1, 0, true})
                  .ok());
  std::fill(batch.tokens.begin(), batch.tokens.end(), 0);
  std::fill(batch.targets.begin(), batch.targets.end(), 0);
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_EQ(loss_sum, expected);
}

// The first step finds out how much scratch memory the operators want.
TEST(CudaStageTest, StepsAllocateNothing) {
  const model::Graph graph = EveryKindGraph(true);
  const auto backend = TestCudaBackend();
  InProcessPipeline<float> pipeline(graph, {graph.CutPoints().at(1)}, 2, 2, *backend, kSeed);
  emulated::Counts before;
  for (int step = 1; step <= 3; ++step) {
    pipeline.Accumulate(Batches(graph, 4, 2), TestOrder::kOneByOne, step);
    pipeline.GradientNorm();
    pipeline.ApplyAdamW({.step = step});
    if (step == 1) before = emulated::TheCounts();
  }
  const emulated::Counts after = emulated::TheCounts();
  EXPECT_GT(after.launches, before.launches);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.pinned_allocations, before.pinned_allocations);
  EXPECT_EQ(after.events, before.events);
}

}  // namespace
}  // namespace longhaul::compute
