#include "compute/stage/stage.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>

#include "base/rng.h"
#include "compute/stage/testing/in_process_pipeline.h"
#include "compute/stage/testing/test_graphs.h"
#include "compute/testing/counting_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/cost.h"
#include "model/family.h"
#include "model/limits.h"

namespace longhaul::compute {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

bool IsKeyBias(const model::Graph& graph, int parameter, size_t element) {
  const std::string& name = graph.parameters[parameter].name;
  const size_t hidden = graph.parameters[parameter].elements() / 3;
  return name.find("attn.qkv.bias") != std::string::npos && element / hidden == 1;
}

class StageGradientTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

// Fourth-order central differences of the summed loss, for every element of every parameter.
TEST_P(StageGradientTest, AgreesWithFiniteDifferences) {
  const auto [tied, every_kind] = GetParam();
  const model::Graph graph = every_kind ? EveryKindGraph(tied) : Gpt2(2, 6, 2, tied);
  const int64_t micro_batch = 2;
  auto backend = MakeCpuBackend(1);
  InProcessPipeline<double> pipeline(graph, {}, micro_batch, 1, *backend, kSeed);
  pipeline.PerturbWeights();
  const std::vector<TestBatch> batches = Batches(graph, 1, micro_batch);
  pipeline.Accumulate(batches, TestOrder::kOneByOne);
  const double global_norm = pipeline.GradientNorm();
  double worst = 0;
  for (int parameter = 0; parameter < static_cast<int>(graph.parameters.size()); ++parameter) {
    const absl::Span<double> weights = pipeline.Weights(parameter);
    const absl::Span<double> gradient = pipeline.Gradient(parameter);
    std::vector<double> expected, error;
    for (size_t e = 0; e < weights.size(); ++e) {
      const double weight = weights[e], h = 1e-3;
      const auto loss = [&](double shift) {
        weights[e] = weight + shift;
        return pipeline.Forward(0, batches[0]);
      };
      const double slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
      weights[e] = weight;
      if (IsKeyBias(graph, parameter, e)) {
        EXPECT_LE(std::abs(gradient[e]), 1e-12 * global_norm);
        continue;
      }
      expected.push_back(slope);
      error.push_back(gradient[e] - slope);
    }
    const double relative = Norm(error) / Norm(expected);
    worst = std::max(worst, relative);
    EXPECT_LE(relative, 1e-6) << graph.parameters[parameter].name;
  }
  RecordProperty("worst_relative_error", std::to_string(worst));
  std::printf("worst relative error of a gradient: %.2e\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Models, StageGradientTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST(StageTest, MemoryIsWhatThePlannerExpects) {
  auto cpu = MakeCpuBackend(1);
  CountingBackend backend(*cpu);
  for (bool tied : {true, false}) {
    const model::Graph graph = Gpt2(2, 24, 3, tied);
    std::vector<int> ends = graph.CutPoints();
    ends.insert(ends.begin(), 0);
    ends.push_back(static_cast<int>(graph.ops.size()));
    for (size_t i = 0; i < ends.size(); ++i) {
      for (size_t j = i + 1; j < ends.size(); ++j) {
        for (int slots : {1, 3}) {
          const bool recompute = (i + j) % 2 == 0;
          const StageOptions options{{ends[i], ends[j]}, 3, slots, recompute};
          auto stage = Stage<float>::Create(graph, options, backend, kSeed);
          ASSERT_TRUE(stage.ok()) << stage.status();
          EXPECT_EQ(backend.bytes(),
                    model::MemoryOf(graph, options.range, 3, slots, recompute).total());
        }
      }
    }
  }
}

TEST(StageTest, StepsAllocateNothing) {
  const model::Graph graph = Gpt2(3, 24, 3, true);
  auto cpu = MakeCpuBackend(1);
  CountingBackend backend(*cpu);
  InProcessPipeline<float> pipeline(graph, graph.BlockPoints(), 2, 2, backend, kSeed);
  const int before = backend.allocations();
  EXPECT_GT(before, 0);
  pipeline.Accumulate(Batches(graph, 4, 2), TestOrder::kOneByOne);
  pipeline.GradientNorm();
  pipeline.ApplyAdamW({});
  EXPECT_EQ(backend.allocations(), before);
}

TEST(StageTest, InitialValuesDoNotDependOnTheStage) {
  const model::Graph graph = Gpt2(3, 24, 3, true);
  auto backend = MakeCpuBackend(1);
  InProcessPipeline<float> whole(graph, {}, 1, 1, *backend, kSeed);
  InProcessPipeline<float> cut(graph, graph.BlockPoints(), 1, 1, *backend, kSeed);
  InProcessPipeline<float> other(graph, {}, 1, 1, *backend, kSeed + 1);
  for (int i = 0; i < static_cast<int>(graph.parameters.size()); ++i) {
    EXPECT_EQ(whole.Weights(i), cut.Weights(i)) << graph.parameters[i].name;
    const bool normal = graph.parameters[i].init.kind == model::InitKind::kNormal;
    EXPECT_EQ(whole.Weights(i) != other.Weights(i), normal) << graph.parameters[i].name;
  }
}

TEST(StageTest, InitialValuesHaveTheStatedDeviation) {
  model::ModelSpec spec;
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 1;
  spec.context = 1;
  spec.vocab = 4099;  // more than one chunk, and an odd number of rows
  const model::Graph graph = *model::BuildGraph(spec);
  auto backend = MakeCpuBackend(1);
  InProcessPipeline<float> pipeline(graph, {}, 1, 1, *backend, kSeed);
  for (int i = 0; i < static_cast<int>(graph.parameters.size()); ++i) {
    const model::Parameter& parameter = graph.parameters[i];
    if (parameter.init.kind != model::InitKind::kNormal) continue;
    double sum = 0, squares = 0;
    for (float value : pipeline.Weights(i)) {
      sum += value;
      squares += double{value} * value;
    }
    const double count = static_cast<double>(parameter.elements());
    const double deviation = parameter.init.standard_deviation;
    EXPECT_NEAR(sum / count / deviation, 0, 5 / std::sqrt(count)) << parameter.name;
    EXPECT_NEAR(squares / count / (deviation * deviation), 1, 5 * std::sqrt(2 / count))
        << parameter.name;
  }
}

// Each pair of elements is the pair of normal numbers of its random bits, whichever thread draws.
TEST(StageTest, InitialValuesAreThoseOfTheContract) {
  model::ModelSpec spec{.layers = 1, .hidden = 64, .heads = 1, .context = 3, .vocab = 4099};
  const model::Graph graph = *model::BuildGraph(spec);
  auto backend = MakeCpuBackend(3);
  InProcessPipeline<float> pipeline(graph, {}, 1, 1, *backend, kSeed);
  for (int i = 0; i < static_cast<int>(graph.parameters.size()); ++i) {
    const model::Parameter& parameter = graph.parameters[i];
    if (parameter.init.kind != model::InitKind::kNormal) continue;
    const absl::Span<float> weights = pipeline.Weights(i);
    for (size_t e = 0; e < weights.size(); ++e) {
      const auto pair =
          RandomNormalPair(RandomBits(kSeed, RandomStream::kInitialWeights, i, 0, e / 2));
      ASSERT_EQ(weights[e], static_cast<float>(parameter.init.standard_deviation * pair[e % 2]))
          << parameter.name << " element " << e;
    }
  }
}

TEST(StageTest, WeightsThatFollowAreNotDrawn) {
  const model::Graph graph = EveryKindGraph(true);
  auto backend = MakeCpuBackend(1);
  StageOptions options{Whole(graph), 1, 1};
  options.weights_follow = true;
  auto stage = *Stage<float>::Create(graph, options, *backend, kSeed);
  for (const StageParameter<float>& parameter : stage->parameters()) {
    EXPECT_THAT(parameter.weights, Each(0));
  }
  // The rest is as in any stage.
  auto drawn = *Stage<float>::Create(graph, {Whole(graph), 1, 1}, *backend, kSeed);
  for (size_t i = 0; i < drawn->parameters().size(); ++i) {
    const absl::Span<const float> from = drawn->parameters()[i].weights;
    std::copy(from.begin(), from.end(), stage->parameters()[i].weights.begin());
  }
  const TestBatch batch = Batches(graph, 1, 1)[0];
  double loss = 0, expected = 0;
  ASSERT_TRUE(stage->Forward({0, batch.tokens, batch.targets, &loss}).ok());
  ASSERT_TRUE(drawn->Forward({0, batch.tokens, batch.targets, &expected}).ok());
  EXPECT_EQ(loss, expected);
}

TEST(StageTest, EvaluationDrawsNoDropout) {
  const model::Graph graph = EveryKindGraph(true);
  auto cpu = MakeCpuBackend(1);
  CountingBackend backend(*cpu);
  auto stage = *Stage<float>::Create(graph, {Whole(graph), 1, 1}, backend, kSeed);
  const TestBatch batch = Batches(graph, 1, 1)[0];
  const auto copies = [&](bool training) {
    const int before = backend.copies();
    double loss = 0;
    EXPECT_TRUE(stage->Forward({0, batch.tokens, batch.targets, &loss, 1, 0, training}).ok());
    return backend.copies() - before;
  };
  // Its only dropout is a copy then.
  EXPECT_EQ(copies(false), copies(true) + 1);
}

TEST(StageTest, WrongTokensAreRefused) {
  const model::Graph graph = Gpt2(1, 24, 3, true);
  auto backend = MakeCpuBackend(1);
  auto stage = *Stage<float>::Create(graph, {Whole(graph), 1, 1}, *backend, kSeed);
  TestBatch batch = Batches(graph, 1, 1)[0];
  double loss = 0;
  ASSERT_TRUE(stage->Forward({0, batch.tokens, batch.targets, &loss}).ok());
  TestBatch bad = batch;
  bad.tokens[2] = static_cast<int32_t>(graph.vocab);
  const absl::Status token = stage->Forward({0, bad.tokens, bad.targets, &loss});
  EXPECT_EQ(token.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(token.message()), HasSubstr("token 11 of row 2"));
  bad = batch;
  bad.targets[2] = -2;
  EXPECT_EQ(stage->Forward({0, bad.tokens, bad.targets, &loss}).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(StageTest, LogitsComeWithoutALoss) {
  const model::Graph graph = Gpt2(2, 24, 3, true);
  auto backend = MakeCpuBackend(1);
  auto stage = *Stage<float>::Create(graph, {Whole(graph), 1, 2}, *backend, kSeed);
  const std::vector<TestBatch> batches = Batches(graph, 2, 1);
  double loss = 0;
  ASSERT_TRUE(stage->Forward({1, batches[0].tokens, batches[0].targets, &loss}).ok());
  const absl::Span<const float> logits = stage->logits().As<float>();
  std::vector<float> expected(logits.begin(), logits.end());
  EXPECT_EQ(expected.size(), static_cast<size_t>(graph.context * graph.vocab));
  const std::vector<int32_t> ignored(graph.context, -1);
  ASSERT_TRUE(stage->Forward({0, batches[0].tokens, ignored}).ok());
  EXPECT_EQ(stage->logits().As<float>(), absl::MakeSpan(expected));
}

TEST(StageTest, OptionsThatAreNoStageAreRefused) {
  const model::Graph graph = Gpt2(3, 24, 3, true);
  const model::OpRange whole = Whole(graph);
  auto backend = MakeCpuBackend(1);
  const struct {
    const char* expected;
    StageOptions options;
    absl::StatusCode code;
  } cases[] = {
      {"may not be cut there", {{0, whole.end - 1}, 1, 1}, absl::StatusCode::kInvalidArgument},
      {"may not be cut there",
       {{whole.end - 1, whole.end}, 1, 1},
       absl::StatusCode::kInvalidArgument},
      {"may not be cut there", {{0, whole.end + 1}, 1, 1}, absl::StatusCode::kInvalidArgument},
      {"may not be cut there", {{4, 4}, 1, 1}, absl::StatusCode::kInvalidArgument},
      {"at least one slot", {whole, 1, 0}, absl::StatusCode::kInvalidArgument},
      {"a micro-batch of 0", {whole, 0, 1}, absl::StatusCode::kInvalidArgument},
      {"a micro-batch of", {whole, model::kRowsMax, 1}, absl::StatusCode::kInvalidArgument},
      {"memory for operators",
       {whole, model::kRowsMax / graph.context, 1 << 20},
       absl::StatusCode::kResourceExhausted},
  };
  for (const auto& test : cases) {
    const absl::Status status = Stage<float>::Create(graph, test.options, *backend, kSeed).status();
    EXPECT_EQ(status.code(), test.code) << test.expected;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.expected));
  }
}

}  // namespace
}  // namespace longhaul::compute
