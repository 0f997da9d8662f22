#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> Span(const Timeline& timeline, int group, InstructionKind kind, int m = 0) {
  std::vector<double> span;
  for (const TimedInstruction& timed : timeline.groups[group]) {
    if (timed.instruction.kind != kind || timed.instruction.micro_batch != m) continue;
    span.insert(span.end(), {timed.start, timed.end});
  }
  return span;
}

TimelineCosts NoLinks(std::vector<double> forward, std::vector<double> backward, int stages) {
  TimelineCosts costs;
  costs.forward_seconds = std::move(forward);
  costs.backward_seconds = std::move(backward);
  for (std::vector<double>* link : {&costs.activation_latency, &costs.activation_transfer,
                                    &costs.gradient_latency, &costs.gradient_transfer}) {
    link->assign(stages - 1, 0);
  }
  return costs;
}

// Worked out on paper: the second stage's replicas take twice as long as the first stage.
TEST(TimelineOfReplicas, TwoReplicasWorkAtTheSameTime) {
  const Shape shape{2, 2, false, {1, 2}, {{0, 0}, {0, 1}}};
  TimelineCosts costs = NoLinks({1, 2, 2}, {2, 4, 4}, 2);
  costs.reduce_seconds = {0, 5};
  const Timeline timeline = *Simulate(*Generate("1f1b", shape), costs);
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kForward, 0), ElementsAre(1, 3));
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kForward, 1), ElementsAre(2, 4));
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kBackward, 0), ElementsAre(3, 7));
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kBackward, 1), ElementsAre(4, 8));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kBackward, 0), ElementsAre(7, 9));
  EXPECT_THAT(Span(timeline, 0, InstructionKind::kBackward, 1), ElementsAre(9, 11));
  // The last replica comes at 8; five seconds later both have the sum.
  EXPECT_THAT(Span(timeline, 1, InstructionKind::kReduceGradients), ElementsAre(7, 13));
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kReduceGradients), ElementsAre(8, 13));
  EXPECT_EQ(timeline.step_seconds, 13);
}

TEST(TimelineOfReplicas, ReplicasShareThePathToTheNextSite) {
  const Shape shape{2, 2, false, {2, 1}, {{0, 1}, {0, 0}}};
  TimelineCosts costs = NoLinks({1, 1, 1}, {1, 1, 1}, 2);
  costs.activation_transfer = {10};
  const Timeline timeline = *Simulate(*Generate("gpipe", shape), costs);
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kForward, 0), ElementsAre(11, 12));
  EXPECT_THAT(Span(timeline, 2, InstructionKind::kForward, 1), ElementsAre(21, 22));
}

TEST(TimelineOfReplicas, FastReplicasWithTheirShareEndTogether) {
  // Three times as fast and three times as much: 4 micro-batches in the time of one slow one.
  const Shape shape{1, 4, false, {2}, {SpreadOwners({3, 1})}};
  const TimelineCosts costs = NoLinks({1, 3}, {2, 6}, 1);
  EXPECT_EQ(Simulate(*Generate("1f1b", shape), costs)->step_seconds, 9);
}

// Rates are balanced: a stage of R replicas, each R times as slow. The steady rate must be that of
// the first stage, whatever the fill: the bubble does not grow with the micro-batches.
TEST(TimelineOfReplicas, BalancedStagesKeepTheirRate) {
  for (const int replicas : {2, 3, 4}) {
    std::vector<double> bubbles;
    for (const int rounds : {4, 8, 16}) {
      const int micro_batches = rounds * replicas;
      const Shape shape{
          2,
          micro_batches,
          false,
          {1, replicas},
          {std::vector<int>(micro_batches, 0), SpreadOwners(std::vector<int>(replicas, rounds))}};
      TimelineCosts costs = NoLinks({1}, {2}, 2);
      costs.forward_seconds.insert(costs.forward_seconds.end(), replicas, replicas);
      costs.backward_seconds.insert(costs.backward_seconds.end(), replicas, 2.0 * replicas);
      bubbles.push_back(Simulate(*Generate("1f1b", shape), costs)->step_seconds -
                        3.0 * micro_batches);
    }
    EXPECT_LE(bubbles[0], 3.0 * (replicas + 1));
    EXPECT_EQ(bubbles[1], bubbles[0]);
    EXPECT_EQ(bubbles[2], bubbles[0]);
  }
}

TEST(TimelineOfReplicas, RefusesCostsOfAnotherShape) {
  const Shape shape{1, 2, false, {2}, {{0, 1}}};
  const auto programs = *Generate("1f1b", shape);
  EXPECT_THAT(std::string(Simulate(programs, NoLinks({1}, {1, 1}, 1)).status().message()),
              HasSubstr("forward_seconds has 1 entries, 2 are needed"));
  TimelineCosts costs = NoLinks({1, 1}, {1, 1}, 1);
  costs.reduce_seconds = {1, 1};
  EXPECT_THAT(std::string(Simulate(programs, costs).status().message()),
              HasSubstr("reduce_seconds has 2 entries, 1 are needed"));
}

}  // namespace
}  // namespace longhaul::schedule
