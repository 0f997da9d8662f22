// Cuts, threads, slots, order and recomputation change no bit.
#include <algorithm>
#include <cstring>

#include "compute/stage/stage.h"
#include "compute/stage/testing/in_process_pipeline.h"
#include "compute/stage/testing/test_graphs.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

// Everything that a step leaves behind, as bits.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> tensors;
  bool operator==(const Outcome& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return same(losses, other.losses) &&
           std::equal(tensors.begin(), tensors.end(), other.tensors.begin(), other.tensors.end(),
                      same);
  }
};

struct Arrangement {
  std::vector<int> cuts;
  int threads = 1;
  int slots = 1;
  TestOrder order = TestOrder::kOneByOne;
  bool recompute = false;
};

Outcome Train(const model::Graph& graph, const Arrangement& arrangement) {
  constexpr int64_t kMicroBatch = 3;
  constexpr int kMicroBatches = 4;
  auto backend = MakeCpuBackend(arrangement.threads);
  InProcessPipeline<float> pipeline(graph, arrangement.cuts, kMicroBatch, arrangement.slots,
                                    *backend, kSeed, arrangement.recompute);
  const std::vector<TestBatch> batches = Batches(graph, kMicroBatches, kMicroBatch);
  Outcome outcome;
  const auto keep = [&](absl::Span<float> span) {
    outcome.tensors.emplace_back(span.begin(), span.end());
  };
  for (int step = 1; step <= 2; ++step) {
    for (double loss : pipeline.Accumulate(batches, arrangement.order, step))
      outcome.losses.push_back(loss);
    const double norm = pipeline.GradientNorm();
    outcome.losses.push_back(norm);
    AdamWStep adamw;
    adamw.learning_rate = 1e-2;
    adamw.weight_decay = 0.1;
    adamw.gradient_scale = 1 / norm;
    adamw.step = step;
    pipeline.ApplyAdamW(adamw);
    for (int parameter = 0; parameter < static_cast<int>(graph.parameters.size()); ++parameter) {
      keep(pipeline.Gradient(parameter));
      keep(pipeline.Weights(parameter));
      keep(pipeline.FirstMoment(parameter));
      keep(pipeline.SecondMoment(parameter));
    }
  }
  return outcome;
}

class StageExactnessTest : public ::testing::TestWithParam<bool> {};

TEST_P(StageExactnessTest, CutsAndThreadsDoNotChangeABit) {
  const model::Graph graph = Gpt2(3, 24, 3, GetParam(), kLongContext);
  const Outcome expected = Train(graph, {});
  const std::vector<int> cuts = graph.BlockPoints();
  ASSERT_EQ(cuts.size(), 3);  // the last in front of the head
  for (int threads : {1, 3}) {
    for (unsigned subset = 0; subset < 8; ++subset) {
      Arrangement arrangement;
      arrangement.threads = threads;
      for (int i = 0; i < 3; ++i) {
        if (subset >> i & 1) arrangement.cuts.push_back(cuts[i]);
      }
      EXPECT_TRUE(Train(graph, arrangement) == expected)
          << "cuts " << subset << ", threads " << threads;
    }
  }
}

TEST_P(StageExactnessTest, SlotsDoNotChangeABit) {
  const model::Graph graph = Gpt2(3, 24, 3, GetParam(), kLongContext);
  const Outcome expected = Train(graph, {});
  EXPECT_TRUE(Train(graph, {{}, 1, 4, TestOrder::kGpipe}) == expected);
  EXPECT_TRUE(Train(graph, {graph.BlockPoints(), 3, 4, TestOrder::kGpipe}) == expected);
  EXPECT_TRUE(Train(graph, {graph.BlockPoints(), 1, 2, TestOrder::kOneByOne}) == expected);
}

TEST_P(StageExactnessTest, EveryCutAndRecomputationKeepEveryBit) {
  const model::Graph graph = EveryKindGraph(GetParam());
  const Outcome expected = Train(graph, {});
  EXPECT_TRUE(Train(graph, {{}, 1, 4, TestOrder::kGpipe, true}) == expected) << "recomputing";
  const std::vector<int> cuts = graph.CutPoints();
  for (size_t i = 0; i < cuts.size(); ++i) {
    const bool recompute = i % 2 == 0;
    EXPECT_TRUE(Train(graph, {{cuts[i]}, 1, 1, TestOrder::kOneByOne, recompute}) == expected)
        << "cut at " << cuts[i];
    if (i + 3 >= cuts.size()) continue;
    // Two cuts with a stage of one or of a few operators between them, which edges cross.
    EXPECT_TRUE(Train(graph, {{cuts[i], cuts[i + 1]}, 1, 1}) == expected) << "at " << cuts[i];
    EXPECT_TRUE(Train(graph, {{cuts[i], cuts[i + 3]}, 2, 4, TestOrder::kGpipe, !recompute}) ==
                expected)
        << "at " << cuts[i];
  }
  EXPECT_TRUE(Train(graph, {cuts, 1, 4, TestOrder::kGpipe, true}) == expected) << "every cut";
}

TEST_P(StageExactnessTest, CopiesOfATiedParameterStayEqual) {
  const model::Graph graph = Gpt2(2, 24, 3, GetParam());
  auto backend = MakeCpuBackend(1);
  InProcessPipeline<float> pipeline(graph, graph.BlockPoints(), 2, 1, *backend, kSeed);
  pipeline.Accumulate(Batches(graph, 2, 2), TestOrder::kOneByOne);
  AdamWStep step;
  step.learning_rate = 1e-2;
  pipeline.ApplyAdamW(step);
  for (int parameter : graph.TiedParameters()) {
    const auto first = pipeline.stage(0).parameters()[0], last = pipeline.last().parameters()[0];
    ASSERT_EQ(first.index, parameter);
    ASSERT_EQ(last.index, parameter);
    EXPECT_EQ(first.weights, last.weights);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, StageExactnessTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tied" : "Untied"; });

}  // namespace
}  // namespace longhaul::compute
