// Several replicas of a stage against the definition of the training on one stage.
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "worker/exec/testing/executor_cluster.h"
#include "worker/exec/testing/gradient_oracle.h"

namespace longhaul::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using schedule::BlockOwners;
using schedule::SpreadOwners;

void ExpectAllOk(const std::vector<std::vector<absl::StatusOr<StepResult>>>& results) {
  for (const auto& of_group : results) {
    for (const auto& result : of_group) ASSERT_TRUE(result.ok()) << result.status();
  }
}

// |a - b| / |b| over all parameters together.
double Difference(const GradientValues& a, const GradientValues& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (const auto& [name, values] : b) {
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(a.at(name)[i]) - values[i], 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
  }
  return std::sqrt(difference / norm);
}

ClusterOptions OneStage(std::vector<int> shares, bool tied = true) {
  return {.replicas = {static_cast<int>(shares.size())},
          .owners = {SpreadOwners(shares)},
          .micro_batches = 6,
          .tied = tied};
}

std::vector<ClusterOptions> UnevenSplits() {
  std::vector<ClusterOptions> splits = {OneStage({5, 1}), OneStage({1, 2, 3}),
                                        OneStage({2, 2, 1, 1}, false)};
  splits.push_back(
      {.stages = 2, .replicas = {2, 3}, .owners = {SpreadOwners({4, 2}), SpreadOwners({3, 1, 2})}});
  splits.push_back({.stages = 3,
                    .replicas = {3, 1, 2},
                    .owners = {BlockOwners({1, 3, 2}), {0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 1, 1}},
                    .schedule = "gpipe"});
  splits.push_back({.stages = 2,
                    .replicas = {1, 2},
                    .owners = {{0, 0, 0, 0, 0, 0}, SpreadOwners({5, 1})},
                    .tied = false});
  return splits;
}

TEST(Replicas, AnyUnevenSplitHasTheGradientOfOneProcess) {
  for (const ClusterOptions& options : UnevenSplits()) {
    ReferenceRun reference(options);
    ExecutorCluster cluster(options);
    const auto results = cluster.RunSteps(1, 1);
    ExpectAllOk(results);
    const ReferenceRun::Step expected = reference.RunStep(1);
    EXPECT_LT(Difference(cluster.Gradients(), reference.Gradients()), 1e-6);
    for (const auto& of_group : results) {
      EXPECT_NEAR(of_group[0]->gradient_norm, expected.gradient_norm,
                  1e-6 * expected.gradient_norm);
    }
    // The forward passes are the same, and losses are added in micro-batch order.
    EXPECT_EQ(results.back()[0]->loss_sum, expected.loss_sum);
    cluster.State();  // checks that replicas hold the same bits
  }
}

// The oracle knows neither micro-batches nor floats: a replica that gave a mean, or a sum over the
// wrong tokens, would be far away. Masked documents make the micro-batches' token counts uneven.
TEST(Replicas, AnyUnevenSplitHasTheGradientInDouble) {
  for (const bool llama : {false, true}) {
    for (const run::DocumentMode documents :
         {run::DocumentMode::kPacked, run::DocumentMode::kMasked}) {
      for (ClusterOptions options : UnevenSplits()) {
        options.llama = llama;
        options.data.documents = documents;
        ExecutorCluster cluster(options);
        ExpectAllOk(cluster.RunSteps(1, 1));
        EXPECT_LT(RelativeDifference(cluster.Gradients(), GradientOfOneProcess(options, 1)), 1e-6)
            << (llama ? "llama" : "gpt2") << ", " << options.stages << " stages";
      }
    }
  }
}

TEST(Replicas, TheSameClusterHasTheSameBitsEveryTime) {
  for (ClusterOptions options : UnevenSplits()) {
    ExecutorCluster first(options);
    options.threads = 2;
    ExecutorCluster second(options);
    ExpectAllOk(first.RunSteps(1, 3));
    ExpectAllOk(second.RunSteps(1, 3));
    EXPECT_EQ(first.State(), second.State());
  }
}

std::vector<ClusterOptions> ExactSplits() {
  std::vector<ClusterOptions> splits;
  for (const bool tied : {false, true}) {
    for (const std::vector<int>& replicas :
         std::vector<std::vector<int>>{{1}, {2}, {4}, {1, 1}, {2, 2}, {1, 4}, {4, 2, 1}}) {
      ClusterOptions options{.stages = static_cast<int>(replicas.size()),
                             .replicas = replicas,
                             .exact_replicas = true,
                             .micro_batches = 8,
                             .tied = tied};
      for (const int count : replicas) {
        options.owners.push_back(BlockOwners(std::vector<int>(count, 8 / count)));
      }
      splits.push_back(options);
    }
  }
  return splits;
}

TEST(Replicas, ExactOnesHaveTheBitsOfOneProcess) {
  for (const ClusterOptions& options : ExactSplits()) {
    ReferenceRun reference(options);
    ExecutorCluster cluster(options);
    const auto results = cluster.RunSteps(1, 3);
    ExpectAllOk(results);
    for (int step = 1; step <= 3; ++step) {
      const ReferenceRun::Step expected = reference.RunStep(step);
      EXPECT_EQ(results.back()[step - 1]->loss_sum, expected.loss_sum);
      for (const auto& of_group : results) {
        EXPECT_EQ(of_group[step - 1]->gradient_norm, expected.gradient_norm);
      }
    }
    EXPECT_EQ(cluster.State(), reference.State());
  }
}

TEST(Replicas, EvaluateToTheSameBitsAndChangeNothing) {
  for (const ClusterOptions& options : ExactSplits()) {
    ReferenceRun reference(options);
    ExecutorCluster cluster(options);
    const auto evaluations = cluster.Evaluate(0);
    const double expected = reference.ValidationLossSum();
    for (int group = 0; group < cluster.groups(); ++group) {
      ASSERT_TRUE(evaluations[group].ok()) << evaluations[group].status();
    }
    EXPECT_EQ(evaluations.back()->loss_sum, expected);
    EXPECT_EQ(evaluations.back()->targets, 128);
    EXPECT_EQ(cluster.State(), reference.State());
  }
}

TEST(Replicas, SkipAStepTogetherAndSeeOneDirective) {
  for (const int poisoned : {0, 1, 2}) {
    ExecutorCluster cluster(
        {.stages = 2, .replicas = {2, 1}, .owners = {SpreadOwners({3, 3}), {0, 0, 0, 0, 0, 0}}});
    cluster.directives().Set(Directive::kStop);
    // Of one replica alone: its part of the gradient is not finite.
    float& weight = cluster.stage(poisoned).parameters()[4].weights[1];
    const float healthy = weight;
    weight = std::numeric_limits<float>::quiet_NaN();
    const auto results = cluster.RunSteps(1, 1);
    weight = healthy;
    ExpectAllOk(results);
    for (const auto& of_group : results) {
      EXPECT_FALSE(of_group[0]->applied);
      EXPECT_EQ(of_group[0]->directive, Directive::kStop);
    }
    EXPECT_EQ(cluster.State(), ReferenceRun({}).State());
  }
}

TEST(Replicas, OneThatNeverComesIsNamedWhenTheDeadlinePasses) {
  ClusterOptions options = OneStage({3, 3});
  options.wait_max = absl::Milliseconds(50);
  ExecutorCluster cluster(options);
  const absl::Status status = cluster.executor(0).RunStep(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("sum among the replicas: "), HasSubstr("replica 1")));
}

TEST(Replicas, CancelEndsACollectiveWithItsReason) {
  ExecutorCluster cluster(OneStage({3, 3}));
  const absl::Time start = cluster.clock().Now();
  absl::Status status;
  std::thread replica([&] { status = cluster.executor(0).RunStep(1).status(); });
  EXPECT_TRUE(cluster.clock().AwaitWaits(1, start + kLongWait));
  cluster.collective(0).Cancel(absl::AbortedError("node n2 is lost"));
  replica.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node n2 is lost"));
}

}  // namespace
}  // namespace longhaul::worker
