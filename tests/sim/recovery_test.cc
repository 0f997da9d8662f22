// The whole system in one process: every way of getting to the last step gives the same bits, and
// what a person is shown has every step once.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/sim/in_process_cluster.h"

namespace longhaul::sim {
namespace {

using coordinator::RunState;

class RecoveryTest : public testing::Test {
 protected:
  static constexpr int64_t kSteps = 30;
  // So many that a fault at the first checkpoint hits long before the end.
  static constexpr int64_t kStepsOfLongRun = 300;

  void SetUp() override {
    cluster_.StartCoordinator();
    cluster_.StartWorker("a1", "a", 1);
    cluster_.StartWorker("a2", "a", 2);
    cluster_.StartWorker("b1", "b", 1);
    cluster_.StartWorker("b2", "b", 3);
  }

  // Trains undisturbed on `stages` stages and returns the final state.
  ModelState Reference(int stages, int64_t steps = kSteps) {
    run::RunSpec spec = cluster_.Spec("reference");
    spec.stages = stages;
    spec.train.steps = steps;
    cluster_.StartRun(spec);
    cluster_.WaitForState("reference", RunState::kDone);
    return cluster_.State("reference");
  }

  // Flips a bit of each of its shards, at the coordinator and on every node. In place: the stores
  // may still be pruning, and take a file that is being written beside them for rubbish.
  void Damage(const checkpoint::Manifest& manifest) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(cluster_.folder())) {
      for (const checkpoint::Shard& shard : manifest.shards) {
        if (file.path().filename() != shard.sha256) continue;
        const auto middle = static_cast<std::streamoff>(shard.bytes / 2);
        std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(middle);
        const int byte = stream.get();
        stream.seekp(middle);
        stream.put(static_cast<char>(byte ^ 1));
        ASSERT_TRUE(stream.flush().good()) << file.path();
      }
    }
  }

  void ExpectEveryStepOnce(const std::string& run) {
    const auto steps = cluster_.Steps(run);
    const auto reference = cluster_.Steps("reference");
    ASSERT_EQ(steps.size(), reference.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].step, static_cast<int64_t>(i) + 1);
      EXPECT_EQ(steps[i].loss, reference[i].loss) << "step " << steps[i].step;
      EXPECT_EQ(steps[i].validation_loss, reference[i].validation_loss);
    }
  }

  InProcessCluster cluster_{testing::TempDir() + "longhaul-sim-" + std::to_string(getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(RecoveryTest, StagesAndSchedulesAgree) {
  const ModelState reference = Reference(1);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    for (int stages = 2; stages <= 4; ++stages) {
      run::RunSpec spec = cluster_.Spec(std::string(schedule) + "-" + std::to_string(stages));
      spec.stages = stages;
      spec.schedule = schedule;
      spec.codec = stages == 3 ? "zstd" : "none";
      cluster_.StartRun(spec);
      cluster_.WaitForState(spec.name, RunState::kDone);
      EXPECT_EQ(cluster_.State(spec.name), reference) << spec.name;
      ExpectEveryStepOnce(spec.name);
    }
  }
}

TEST_F(RecoveryTest, StoppedAndResumedWithOtherStages) {
  const ModelState reference = Reference(2, kStepsOfLongRun);
  run::RunSpec spec = cluster_.Spec("stopped");
  spec.stages = 3;
  spec.train.steps = kStepsOfLongRun;
  cluster_.StartRun(spec);
  cluster_.WaitForStep("stopped", 3);
  cluster_.StopRun("stopped");
  cluster_.WaitForState("stopped", RunState::kStopped);
  cluster_.ResumeRun("stopped", 4);
  cluster_.WaitForState("stopped", RunState::kDone);
  EXPECT_EQ(cluster_.State("stopped"), reference);
  ExpectEveryStepOnce("stopped");
}

TEST_F(RecoveryTest, WorkerDiesAndTheRunResumesFromItsCheckpoint) {
  const ModelState reference = Reference(4, kStepsOfLongRun);
  run::RunSpec spec = cluster_.Spec("killed");
  spec.stages = 4;
  spec.train.steps = kStepsOfLongRun;
  spec.checkpoint_every = 20;
  cluster_.StartRun(spec);
  cluster_.WaitFor("a checkpoint", [&] { return cluster_.Run("killed").checkpoint.has_value(); });
  const std::string victim = cluster_.Run("killed").plan->stages[1].node;
  cluster_.KillWorker(victim);
  cluster_.WaitForState("killed", RunState::kInterrupted);
  EXPECT_NE(cluster_.Run("killed").reason.find(victim), std::string::npos)
      << cluster_.Run("killed").reason;
  cluster_.ResumeRun("killed", 3);
  cluster_.WaitForState("killed", RunState::kDone);
  EXPECT_EQ(cluster_.State("killed"), reference);
  ExpectEveryStepOnce("killed");
}

TEST_F(RecoveryTest, GoesBackToAnOlderCheckpoint) {
  const ModelState reference = Reference(2, kStepsOfLongRun);
  run::RunSpec spec = cluster_.Spec("back");
  spec.stages = 2;
  spec.train.steps = kStepsOfLongRun;
  spec.checkpoint_every = 10;
  cluster_.StartRun(spec);
  cluster_.WaitFor("two checkpoints",
                   [&] { return !cluster_.Run("back").other_checkpoints.empty(); });
  cluster_.StopRun("back");
  cluster_.WaitForState("back", RunState::kStopped);
  const coordinator::RunRecord stopped = cluster_.Run("back");
  const int64_t newest = stopped.checkpoint->step;
  const int64_t older = stopped.other_checkpoints.back().manifest.step;
  // By itself, because the newest is damaged.
  Damage(*stopped.checkpoint);
  cluster_.ResumeRun("back", 2);
  cluster_.WaitFor("a resume from the older one",
                   [&] { return cluster_.Run("back").start_step == older; });
  EXPECT_NE(cluster_.Run("back").reason.find("step " + std::to_string(newest) + " is damaged"),
            std::string::npos)
      << cluster_.Run("back").reason;
  cluster_.WaitForStep("back", newest + 1);
  cluster_.StopRun("back");
  cluster_.WaitForState("back", RunState::kStopped);
  // Because a person says so, on another number of stages. The run may have gone far before it
  // stopped, and have removed the oldest.
  int64_t chosen = 0;
  for (const auto& other : cluster_.Run("back").other_checkpoints) {
    if (other.damage.empty()) chosen = std::max(chosen, other.manifest.step);
  }
  cluster_.ResumeRun("back", 3, chosen);
  cluster_.WaitForState("back", RunState::kDone);
  EXPECT_EQ(cluster_.State("back"), reference);
  ExpectEveryStepOnce("back");
}

TEST_F(RecoveryTest, TrainingGoesOnWithoutTheCoordinator) {
  const ModelState reference = Reference(2);
  run::RunSpec spec = cluster_.Spec("alone");
  spec.stages = 2;
  cluster_.StartRun(spec);
  cluster_.WaitForStep("alone", 2);
  const std::string last = cluster_.Run("alone").plan->stages[1].node;
  cluster_.KillCoordinator();
  const int64_t before = cluster_.StepAt(last);
  ASSERT_LT(before, kSteps - 2) << "it was over before the coordinator was";
  cluster_.WaitFor("later steps", [&] { return cluster_.StepAt(last) > before + 2; });
  cluster_.StartCoordinator();
  const Epoch epoch = cluster_.Run("alone").epoch;
  cluster_.WaitForState("alone", RunState::kDone);
  EXPECT_EQ(cluster_.Run("alone").epoch, epoch) << "adopted, not planned again";
  EXPECT_EQ(cluster_.State("alone"), reference);
  ExpectEveryStepOnce("alone");
}

TEST_F(RecoveryTest, BrokenLinksAndStreamsCostNothing) {
  const ModelState reference = Reference(4);
  run::RunSpec spec = cluster_.Spec("rough");
  spec.stages = 4;
  cluster_.StartRun(spec);
  for (int step = 1; step <= 10; step += 3) {
    cluster_.WaitForStep("rough", step);
    for (const char* name : {"a1", "a2", "b1", "b2"}) cluster_.BreakLinks(name);
    cluster_.Disconnect("a2");
    cluster_.Reconnect("a2");
  }
  cluster_.WaitForState("rough", RunState::kDone);
  EXPECT_EQ(cluster_.State("rough"), reference);
  ExpectEveryStepOnce("rough");
}

TEST_F(RecoveryTest, DrainedNodeLeavesTheRun) {
  const ModelState reference = Reference(4);
  run::RunSpec spec = cluster_.Spec("drained");
  cluster_.StartRun(spec);
  cluster_.WaitForStep("drained", 2);
  const std::string node = cluster_.Run("drained").plan->stages[0].node;
  cluster_.DrainNode(node);
  cluster_.WaitForState("drained", RunState::kDone);
  EXPECT_EQ(cluster_.State("drained"), reference);
  ExpectEveryStepOnce("drained");
}

}  // namespace
}  // namespace longhaul::sim
