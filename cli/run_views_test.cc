#include "cli/run_views.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;

std::string Printed(const v1::RunSummary& run) {
  v1::ListRunsResponse runs;
  *runs.add_runs() = run;
  testing::internal::CaptureStdout();
  PrintRunTable(runs);
  PrintRun(run);
  return testing::internal::GetCapturedStdout();
}

// Step 0 is that of weights which were given, or no checkpoint at all.
TEST(RunViews, ACheckpointOfStep0IsOne) {
  v1::RunSummary run;
  run.set_run("first");
  run.set_state("running");
  run.set_reason("R");
  EXPECT_THAT(Printed(run), HasSubstr("  -           R\n"));
  EXPECT_THAT(Printed(run), HasSubstr("checkpoint  none yet\n"));
  EXPECT_EQ(RunToJson(run)["has_checkpoint"], false);
  run.set_has_checkpoint(true);
  EXPECT_THAT(Printed(run), HasSubstr("  step 0      R\n"));
  EXPECT_THAT(Printed(run), HasSubstr("checkpoint  step 0\n"));
  EXPECT_EQ(RunToJson(run)["has_checkpoint"], true);
}

TEST(RunViews, TheMeasuredStepStandsBesideThePredictedOne) {
  v1::RunSummary run;
  run.set_run("first");
  run.set_predicted_step_seconds(1.25);
  EXPECT_THAT(Printed(run), HasSubstr("(predicted step 1.2 s)\n"));
  EXPECT_FALSE(RunLineToJson(run).contains("step_seconds"));
  run.set_step_seconds(1.5);
  EXPECT_THAT(Printed(run), HasSubstr("(a step takes 1.5 s, predicted 1.2 s)\n"));
  EXPECT_EQ(RunLineToJson(run)["step_seconds"], 1.5);
  EXPECT_FALSE(RunLineToJson(run).contains("plan"));
  EXPECT_TRUE(RunToJson(run).contains("plan"));
}

TEST(RunViews, ARunIsOverOnceNothingMoreHappensByItself) {
  v1::RunSummary run;
  for (const char* state : {"pending", "running"}) {
    run.set_state(state);
    EXPECT_FALSE(IsOver(run)) << state;
  }
  for (const char* state : {"interrupted", "stopped", "failed", "done"}) {
    run.set_state(state);
    EXPECT_TRUE(IsOver(run)) << state;
  }
}

}  // namespace
}  // namespace longhaul::cli
