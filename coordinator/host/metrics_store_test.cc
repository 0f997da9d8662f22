#include "coordinator/host/metrics_store.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "coordinator/host/testing/host_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

control::StepReport Report(Epoch epoch, int stage, int stages, int64_t step) {
  control::StepReport report;
  report.run = "first";
  report.epoch = epoch;
  report.stage = stage;
  report.stages = stages;
  report.step = step;
  report.tokens = 100;
  report.total_seconds = 0.5 + stage;
  report.loss = stage == stages - 1 ? 10.0 * epoch.number + static_cast<double>(step) : 0;
  return report;
}

class MetricsStoreTest : public testing::Test {
 protected:
  MetricsStoreTest() { store_ = *OpenSqliteMetrics(folder_ / "metrics.db"); }

  void Record(const std::vector<control::StepReport>& reports) {
    ASSERT_TRUE(store_->Record(reports).ok());
  }
  std::vector<int64_t> Steps(int64_t after, int limit = 100) {
    std::vector<int64_t> steps;
    const auto completed = store_->CompletedSteps("first", after, limit);
    for (const CompletedStep& step : *completed) {
      steps.push_back(step.step);
    }
    return steps;
  }

  TestFolder folder_;
  std::unique_ptr<MetricsStore> store_;
  const Epoch one_ = {1, 1}, two_ = {1, 2};
};

TEST_F(MetricsStoreTest, AStepIsCompleteWhenAllStagesHaveReportedIt) {
  EXPECT_THAT(Steps(0), IsEmpty());
  Record({Report(one_, 1, 2, 1), Report(one_, 1, 2, 2)});
  EXPECT_THAT(Steps(0), IsEmpty());
  Record({Report(one_, 0, 2, 1)});
  EXPECT_THAT(Steps(0), ElementsAre(1));
  Record({Report(one_, 0, 2, 2), Report(one_, 0, 2, 3)});
  EXPECT_THAT(Steps(0), ElementsAre(1, 2));
  EXPECT_THAT(Steps(1), ElementsAre(2));
  EXPECT_THAT(Steps(2), IsEmpty());
  EXPECT_THAT(Steps(0, 1), ElementsAre(1));
  EXPECT_THAT(Steps(0, 0), IsEmpty());
}

TEST_F(MetricsStoreTest, FiguresAreTheLastStagesAndTheSlowestTime) {
  control::StepReport last = Report(one_, 1, 2, 1);
  last.has_validation = true;
  last.validation_loss = 2.5;
  last.gradient_norm = 0.75;
  last.learning_rate = 1e-3;
  last.applied = false;
  last.total_seconds = 0.25;
  Record({Report(one_, 0, 2, 1), last});
  const CompletedStep step = store_->CompletedSteps("first", 0, 1)->at(0);
  EXPECT_EQ(step.loss, 11);
  EXPECT_EQ(step.seconds, 0.5);
  EXPECT_EQ(step.validation_loss, 2.5);
  EXPECT_TRUE(step.has_validation);
  EXPECT_FALSE(step.applied);
  EXPECT_EQ(step.gradient_norm, 0.75);
  EXPECT_EQ(step.learning_rate, 1e-3);
  EXPECT_EQ(step.tokens, 100);
}

TEST_F(MetricsStoreTest, ADivergedRunShowsNoNumberForItsLoss) {
  control::StepReport diverged = Report(one_, 0, 1, 1);
  diverged.loss = std::numeric_limits<double>::quiet_NaN();
  diverged.gradient_norm = std::numeric_limits<double>::infinity();
  diverged.has_validation = true;
  diverged.validation_loss = std::numeric_limits<double>::quiet_NaN();
  Record({diverged});
  const CompletedStep step = store_->CompletedSteps("first", 0, 1)->at(0);
  EXPECT_TRUE(std::isnan(step.loss)) << step.loss;
  EXPECT_TRUE(std::isinf(step.gradient_norm)) << step.gradient_norm;
  const RunFigures figures = *store_->Figures("first", 1);
  EXPECT_TRUE(std::isnan(figures.loss)) << figures.loss;
  EXPECT_TRUE(std::isnan(figures.validation_loss)) << figures.validation_loss;
}

TEST_F(MetricsStoreTest, ReportsAgainChangeNothing) {
  for (int i = 0; i < 3; ++i) Record({Report(one_, 0, 2, 1), Report(one_, 1, 2, 1)});
  EXPECT_THAT(Steps(0), ElementsAre(1));
}

TEST_F(MetricsStoreTest, StepsTrainedTwiceAppearOnceWithTheNewestEpoch) {
  for (int64_t step = 1; step <= 3; ++step) {
    Record({Report(one_, 0, 3, step), Report(one_, 1, 3, step), Report(one_, 2, 3, step)});
  }
  // Resumed after step 1 with two stages; stage 2 of the older epoch is no part of it.
  Record({Report(two_, 0, 2, 2), Report(two_, 1, 2, 2), Report(two_, 0, 2, 3)});
  const auto steps = *store_->CompletedSteps("first", 0, 10);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].loss, 11);
  EXPECT_EQ(steps[1].loss, 22);
  EXPECT_EQ(steps[2].loss, 13);  // the new epoch has not completed step 3
}

TEST_F(MetricsStoreTest, AReportThatWasLostDoesNotHoldUpLaterSteps) {
  Record({Report(one_, 1, 2, 1)});  // stage 0 died before its report was sent
  EXPECT_THAT(Steps(0), IsEmpty());
  Record({Report(two_, 0, 1, 2)});
  EXPECT_THAT(Steps(0), ElementsAre(1, 2));
  EXPECT_THAT(Steps(1), ElementsAre(2));
}

TEST_F(MetricsStoreTest, NothingComesBehindAGap) {
  Record({Report(one_, 0, 1, 1), Report(one_, 0, 1, 3)});
  EXPECT_THAT(Steps(0), ElementsAre(1));
  Record({Report(one_, 0, 1, 2)});
  EXPECT_THAT(Steps(0), ElementsAre(1, 2, 3));
}

TEST_F(MetricsStoreTest, NewestReportsOfEachStage) {
  Record({Report(one_, 0, 2, 1), Report(one_, 0, 2, 2), Report(one_, 1, 2, 1)});
  const auto reports = *store_->NewestReports("first", one_, 0);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].step, 2);
  EXPECT_EQ(reports[1].step, 1);
  EXPECT_EQ(store_->NewestReports("first", one_, 1)->size(), 1u);
  EXPECT_THAT(*store_->NewestReports("first", two_, 0), IsEmpty());
}

TEST_F(MetricsStoreTest, FiguresOfARun) {
  EXPECT_EQ(store_->Figures("first", 1)->step, 0);
  for (int64_t step = 1; step <= 30; ++step) {
    control::StepReport report = Report(one_, 0, 1, step);
    report.applied = step != 7;
    report.has_validation = step % 10 == 0;
    report.validation_loss = static_cast<double>(step);
    if (step == 28) report.total_seconds = 4;
    Record({report});
  }
  Record({Report(one_, 0, 2, 31)});  // not complete
  const RunFigures figures = *store_->Figures("first", 30);
  EXPECT_EQ(figures.step, 30);
  EXPECT_EQ(figures.loss, 40);
  EXPECT_EQ(figures.tokens_per_second, 2000 / 13.5);  // 20 steps of 100 tokens
  EXPECT_EQ(figures.step_seconds, 0.5);               // one slow step is not the measure
  EXPECT_EQ(figures.step_epoch, one_);
  EXPECT_EQ(figures.validation_loss, 30);
  EXPECT_TRUE(figures.has_validation);
  EXPECT_EQ(figures.skipped_steps, 1);
  EXPECT_EQ(store_->Figures("other", 30)->step, 0);
}

TEST_F(MetricsStoreTest, FiguresOfARunThatWentBackAreOfTheStepItIsAt) {
  for (int64_t step = 1; step <= 9; ++step) {
    control::StepReport report = Report(one_, 0, 1, step);
    report.has_validation = step % 4 == 0;
    report.validation_loss = static_cast<double>(step);
    report.applied = step != 8;
    Record({report});
  }
  RunFigures figures = *store_->Figures("first", 5);
  EXPECT_EQ(figures.step, 5);
  EXPECT_EQ(figures.loss, 15);
  EXPECT_EQ(figures.validation_loss, 4);
  EXPECT_EQ(figures.skipped_steps, 0);
  EXPECT_EQ(figures.newest_step, 9);
  EXPECT_EQ(figures.newest_epoch, one_);
  Record({Report(two_, 0, 1, 6)});
  figures = *store_->Figures("first", 6);
  EXPECT_EQ(figures.loss, 26);
  EXPECT_EQ(figures.step_epoch, two_);
  EXPECT_EQ(figures.newest_step, 9);
  for (int64_t step = 7; step <= 9; ++step) Record({Report(two_, 0, 1, step)});
  EXPECT_EQ(store_->Figures("first", 9)->newest_epoch, two_);
  // The record may be ahead of who asks, or behind.
  EXPECT_EQ(store_->Figures("first", 8)->step, 8);
  EXPECT_EQ(store_->Figures("first", 12)->step, 9);
  EXPECT_EQ(store_->Figures("first", 0)->step, 0);
  EXPECT_EQ(store_->Figures("first", 0)->newest_step, 9);
}

TEST_F(MetricsStoreTest, SurvivesReopening) {
  Record({Report(one_, 0, 1, 1)});
  store_.reset();
  store_ = *OpenSqliteMetrics(folder_ / "metrics.db");
  EXPECT_THAT(Steps(0), ElementsAre(1));
}

}  // namespace
}  // namespace longhaul::coordinator
