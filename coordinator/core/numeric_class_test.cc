// Which numeric classes a run keeps to, from its first plan over its checkpoints to a resume.
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two nodes and a run of two stages on them.
class Cluster {
 public:
  explicit Cluster(bool any_numeric_class) {
    state_ = Restore(CoreOptions(), {}, {}, absl::UnixEpoch());
    for (const uint64_t session : {1, 2}) {
      NodeConnected node;
      node.session = session;
      node.facts.profile.name = absl::StrCat("n", session);
      node.facts.incarnation = 1;
      Do(node);
    }
    StartRun start;
    start.request = 1;
    start.spec.name = "first";
    start.spec.model.context = 8;
    start.spec.train.steps = 100;
    start.spec.train.global_batch = 4;
    start.spec.any_numeric_class = any_numeric_class;
    Do(start);
  }

  // The newest request for a plan is answered with one on nodes of these classes.
  void Plan(std::vector<std::string> classes) {
    coordinator::Plan plan;
    plan.numeric_classes = std::move(classes);
    for (const int stage : {0, 1}) {
      StagePlacement& placement = plan.stages.emplace_back();
      placement.node = absl::StrCat("n", stage + 1);
      placement.range = {stage, stage + 1};
    }
    Do(PlanMade{"first", planned_.epoch, std::move(plan)});
  }

  // The class that the checkpoint of the step is committed with.
  std::string ClassOfCheckpoint(int64_t step) {
    for (const uint64_t session : {1, 2}) Do(StageReady{session, {"first", run().epoch}});
    for (const int stage : {0, 1}) {
      Do(ShardStored{static_cast<uint64_t>(stage + 1),
                     {"first", run().epoch, stage, step, {absl::StrCat("hash", stage), 10, {}}}});
    }
    Do(ManifestCommitted{"first", run().epoch, step, absl::OkStatus()});
    return committed_.numeric_class;
  }

  // A stop and a resume, for which a plan is then asked.
  void Resume() {
    const int64_t step = 20;
    Do(StopRun{2, "first"});
    for (const int stage : {0, 1}) {
      const uint64_t session = stage + 1;
      Do(ShardStored{session, {"first", run().epoch, stage, step, {absl::StrCat(stage), 10, {}}}});
      Do(StageEnded{session, {"first", run().epoch, stage, step}});
    }
    Do(ManifestCommitted{"first", run().epoch, step, absl::OkStatus()});
    Do(ResumeRun{.request = 3, .run = "first"});
  }

  const RunRecord& run() const { return state_.runs.at("first"); }
  const PlanRequest& asked() const { return planned_.request; }

 private:
  void Do(const Event& event) {
    for (Action& action : Step(state_, event, absl::UnixEpoch())) {
      if (auto* plan = std::get_if<RequestPlan>(&action)) planned_ = std::move(*plan);
      if (auto* commit = std::get_if<CommitManifest>(&action)) committed_ = commit->manifest;
    }
  }

  State state_;
  RequestPlan planned_;
  checkpoint::Manifest committed_;
};

TEST(NumericClasses, ARunKeepsToTheClassOfItsFirstPlan) {
  Cluster cluster(/*any_numeric_class=*/false);
  EXPECT_EQ(cluster.asked().numeric_class, "");
  cluster.Plan({"cpu"});
  EXPECT_EQ(NumericClassOf(cluster.run()), "cpu");
  EXPECT_EQ(cluster.ClassOfCheckpoint(10), "cpu");
  cluster.Resume();
  EXPECT_EQ(cluster.asked().numeric_class, "cpu");
  EXPECT_FALSE(cluster.asked().spec.any_numeric_class);
}

TEST(NumericClasses, AMixedRunStaysMixedAndItsCheckpointsSaySo) {
  Cluster cluster(/*any_numeric_class=*/true);
  cluster.Plan({"cpu", "cuda"});
  EXPECT_EQ(NumericClassOf(cluster.run()), "");
  EXPECT_THAT(cluster.run().reason,
              HasSubstr("2 stages, epoch 1.1; nodes of 2 numeric classes take "
                        "part, so the bits depend on where each stage runs"));
  EXPECT_EQ(cluster.ClassOfCheckpoint(10), "mixed: cpu, cuda");
  cluster.Resume();
  EXPECT_EQ(cluster.asked().numeric_class, "");
  EXPECT_TRUE(cluster.asked().spec.any_numeric_class);
}

TEST(NumericClasses, ClassesThatTookPartBeforeAreNotForgotten) {
  Cluster cluster(/*any_numeric_class=*/true);
  cluster.Plan({"cuda"});
  EXPECT_EQ(cluster.ClassOfCheckpoint(10), "cuda");
  cluster.Resume();
  EXPECT_EQ(cluster.asked().numeric_class, "");
  cluster.Plan({"cpu"});
  EXPECT_THAT(cluster.run().numeric_classes, ElementsAre("cpu", "cuda"));
  EXPECT_THAT(cluster.run().reason, ::testing::Not(HasSubstr("bits")));
  EXPECT_EQ(cluster.ClassOfCheckpoint(30), "mixed: cpu, cuda");
}

}  // namespace
}  // namespace longhaul::coordinator
