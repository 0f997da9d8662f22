#include "worker/host/assignment.h"

#include <algorithm>
#include <functional>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "worker/host/testing/host_testing.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

model::Graph GraphOf(const run::RunSpec& spec) { return *model::BuildGraph(spec.model); }

// Ends of the stages when the model is cut before each of these blocks.
std::vector<int> Ends(const model::Graph& graph, const std::vector<int>& blocks) {
  const std::vector<int> cuts = graph.BlockPoints();
  std::vector<int> ends;
  for (const int block : blocks) ends.push_back(cuts[block - 1]);
  ends.push_back(static_cast<int>(graph.ops.size()));
  return ends;
}

TEST(MakeStagePlan, OneStageHasNoLinks) {
  const run::RunSpec spec = TestSpec("r");
  const auto plan = MakeStagePlan(TestAssignment(spec, Ends(GraphOf(spec), {})), 0, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->is_first && plan->is_last);
  EXPECT_THAT(plan->links, SizeIs(0));
  EXPECT_EQ(plan->program.slots, 1);
  EXPECT_TRUE(plan->evaluation_program.instructions.empty());
}

TEST(MakeStagePlan, TheValidationPartIsBounded) {
  const run::RunSpec spec = TestSpec("r");
  const Assignment assignment = TestAssignment(spec, Ends(GraphOf(spec), {}));
  const auto plan = MakeStagePlan(assignment, kValidationMicroBatchesMax + 1, 1);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("4000001 micro-batches, more than the 4000000 allowed; set a smaller "
                        "data.validation_fraction"));
}

// Three stages, 3 micro-batches of 2 sequences of 8 tokens, hidden 8, vocabulary 256.
TEST(MakeStagePlan, LinksAreWhatBothEndsNeed) {
  const run::RunSpec spec = TestSpec("r");
  const model::Graph graph = GraphOf(spec);
  Assignment assignment = TestAssignment(spec, Ends(graph, {1, 3}), /*stage=*/0);
  assignment.link_codecs = {"zstd", "bf16"};
  auto plan = MakeStagePlan(assignment, 2, /*connections=*/4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->is_first);
  EXPECT_FALSE(plan->is_last);
  EXPECT_FALSE(plan->evaluation_program.instructions.empty());
  ASSERT_THAT(plan->links, SizeIs(2));
  const LinkOptions& next = plan->links[0];
  EXPECT_EQ(next.peer_stage, 1);
  EXPECT_EQ(next.peer_node, "node-1");
  EXPECT_EQ(next.peer_address, "memory:node-1");
  EXPECT_EQ(next.codec, "zstd");
  EXPECT_EQ(next.tensor_elements, 2u * 8 * 8);
  EXPECT_EQ(next.tied_elements, 0u);
  EXPECT_EQ(next.norms_max, 2 * graph.parameters.size());
  EXPECT_EQ(next.connections, 4);
  EXPECT_EQ(next.window, 3);
  const LinkOptions& last = plan->links[1];
  EXPECT_EQ(last.peer_stage, 2);
  EXPECT_EQ(last.tensor_elements, 0u);
  EXPECT_EQ(last.tied_elements, 256u * 8);

  assignment.stage = 1;
  plan = MakeStagePlan(assignment, 2, 4);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->is_first || plan->is_last);
  ASSERT_THAT(plan->links, SizeIs(2));
  EXPECT_EQ(plan->links[0].codec, "zstd");
  EXPECT_EQ(plan->links[0].window, 3);
  EXPECT_EQ(plan->links[1].codec, "bf16");
  EXPECT_EQ(plan->links[1].window, 2);
  EXPECT_EQ(plan->links[1].tied_elements, 0u);
}

TEST(MakeStagePlan, TwoTiedStagesShareOneLink) {
  for (const bool tied : {false, true}) {
    const run::RunSpec spec = TestSpec("r", tied);
    const auto plan = MakeStagePlan(TestAssignment(spec, Ends(GraphOf(spec), {2}), 1), 0, 1);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_THAT(plan->links, SizeIs(1));
    EXPECT_EQ(plan->links[0].tensor_elements, 2u * 8 * 8);
    EXPECT_EQ(plan->links[0].tied_elements, tied ? 256u * 8 : 0u);
  }
}

// Both ends of a link must agree, or their frames are refused. Micro-batches in flight of 1F1B:
// min(stages - s, micro-batches) (Narayanan et al. 2021); GPipe keeps them all.
TEST(MakeStagePlan, EveryPartitionHasTheWindowsOfItsSchedule) {
  run::RunSpec spec = TestSpec("r");
  const model::Graph graph = GraphOf(spec);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    spec.schedule = schedule;
    for (const std::vector<int>& blocks :
         std::vector<std::vector<int>>{{1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}, {1, 2, 3}}) {
      const int stages = static_cast<int>(blocks.size()) + 1;
      for (int stage = 0; stage < stages; ++stage) {
        const auto plan = MakeStagePlan(TestAssignment(spec, Ends(graph, blocks), stage), 0, 1);
        ASSERT_TRUE(plan.ok()) << plan.status();
        for (const LinkOptions& link : plan->links) {
          if (link.tensor_elements == 0) continue;
          const int upstream = std::min(stage, link.peer_stage);
          EXPECT_EQ(link.window, spec.schedule == "gpipe" ? 3 : std::min(stages - upstream, 3));
          EXPECT_EQ(link.tensor_elements, 2u * 8 * 8);
        }
      }
    }
  }
}

// The second of two stages has two replicas; 3 micro-batches of a step.
Assignment WithReplicas(int group) {
  const run::RunSpec spec = TestSpec("r");
  const std::vector<int> ends = Ends(GraphOf(spec), {2});
  Assignment assignment = TestAssignment(spec, ends, group);
  StagePeer other = assignment.stages[1];
  other.node = "node-2";
  other.data_address = "memory:node-2";
  other.replica = 1;
  other.micro_batches = 1;
  assignment.stages[1].micro_batches = 2;
  assignment.stages.push_back(other);
  return assignment;
}

TEST(MakeStagePlan, ReplicasShareTheMicroBatches) {
  const auto first = MakeStagePlan(WithReplicas(0), 2, 1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->micro_batches, 3);
  EXPECT_TRUE(first->replica_names.empty());
  ASSERT_THAT(first->links, SizeIs(2));
  EXPECT_EQ(first->links[0].peer_group, 1);
  EXPECT_EQ(first->links[0].peer_name, "stage 1 replica 0");
  EXPECT_EQ(first->links[0].tied_elements, 256u * 8);
  EXPECT_EQ(first->links[1].peer_group, 2);
  EXPECT_EQ(first->links[1].peer_stage, 1);
  EXPECT_EQ(first->links[1].tied_elements, 0u);  // only leaders exchange the tied sum
  const auto third = MakeStagePlan(WithReplicas(2), 2, 1);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->stage, 1);
  EXPECT_EQ(third->replica, 1);
  EXPECT_EQ(third->micro_batches, 1);
  EXPECT_TRUE(third->is_last);
  EXPECT_EQ(third->names[2], "stage 1 replica 1");
  ASSERT_THAT(third->replica_names, SizeIs(2));
  EXPECT_EQ(third->replica_names[0], "stage 1 replica 0 (node-1 at memory:node-1)");
  ASSERT_THAT(third->links, SizeIs(2));
  EXPECT_EQ(third->links[0].peer_group, 0);
  // For signs of life alone.
  EXPECT_EQ(third->links[1].peer_group, 1);
  EXPECT_EQ(third->links[1].peer_stage, 1);
  EXPECT_EQ(third->links[1].tensor_elements, 0u);
}

TEST(MakeStagePlan, RefusesReplicasThatDoNotFit) {
  const auto refusal = [](auto spoil) {
    Assignment assignment = WithReplicas(1);
    spoil(assignment);
    const absl::Status status = MakeStagePlan(assignment, 0, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[2].replica = 2; }), HasSubstr("replica 2 of"));
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[0].replica = 1; }), HasSubstr("replica 1 of"));
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[2].replica = -1; }), HasSubstr("replica -1 of"));
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[2].micro_batches = 2; }),
              HasSubstr("the replicas of stage 1 take 4 of 3 micro-batches"));
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[2].micro_batches = 4; }),
              HasSubstr("node-2 takes 4 of 3"));
  EXPECT_THAT(refusal([](Assignment& a) { a.stages[2].micro_batches = -1; }),
              HasSubstr("node-2 takes -1 of 3"));
  EXPECT_THAT(refusal([](Assignment& a) { --a.stages[2].range.end; }),
              HasSubstr("other operators than the stage's first replica"));
  EXPECT_THAT(refusal([](Assignment& a) { a.spec.exact_replicas = true; }),
              HasSubstr("equal powers of two"));
}

struct Hostile {
  const char* what;
  std::function<void(Assignment&)> spoil;
  const char* message;
};

TEST(MakeStagePlan, RefusesWhatIsWrong) {
  const run::RunSpec spec = TestSpec("r");
  const model::Graph graph = GraphOf(spec);
  const std::vector<int> ends = Ends(graph, {1, 3});
  const std::vector<Hostile> cases = {
      {"no stages", [](Assignment& a) { a.stages.clear(); }, "no stages"},
      {"negative stage", [](Assignment& a) { a.stage = -1; }, "stage -1 of 3"},
      {"stage beyond the last", [](Assignment& a) { a.stage = 3; }, "stage 3 of 3"},
      {"too few codecs", [](Assignment& a) { a.link_codecs.pop_back(); }, "1 codecs for 2 links"},
      {"too many codecs", [](Assignment& a) { a.link_codecs.push_back("none"); },
       "3 codecs for 2 links"},
      {"unknown codec", [](Assignment& a) { a.link_codecs[1] = "rot13"; }, "rot13"},
      {"codec that only a planner knows", [](Assignment& a) { a.link_codecs[0] = "auto"; }, "auto"},
      {"overlap", [](Assignment& a) { --a.stages[1].range.begin; }, "stage 1 has operators"},
      {"gap", [](Assignment& a) { ++a.stages[1].range.begin; }, "stage 1 has operators"},
      {"does not begin at the first operator", [](Assignment& a) { a.stages[0].range.begin = 1; },
       "stage 0 has operators"},
      {"begins before the first operator", [](Assignment& a) { a.stages[0].range.begin = -1; },
       "stage 0 has operators"},
      {"ends early", [](Assignment& a) { --a.stages[2].range.end; }, "stage 2 has operators"},
      {"ends past the last operator", [](Assignment& a) { ++a.stages[2].range.end; },
       "stage 2 has operators"},
      {"empty stage", [](Assignment& a) { a.stages[1].range.end = a.stages[1].range.begin; },
       "stage 1 has operators"},
      {"backward stage", [](Assignment& a) { a.stages[1].range.end = 0; }, "stage 1 has operators"},
      {"cut in front of the loss",
       [&](Assignment& a) {
         a.stages[1].range.end = a.stages[2].range.begin = static_cast<int>(graph.ops.size()) - 1;
       },
       "stage 1 has operators"},
      {"a middle stage with everything",
       [&](Assignment& a) { a.stages[1].range.end = static_cast<int>(graph.ops.size()); },
       "stage 1 has operators"},
      {"invalid spec", [](Assignment& a) { a.spec.model.context = 0; }, "model.context"},
      {"unknown schedule", [](Assignment& a) { a.spec.schedule = "zigzag"; }, "schedule"},
      {"start before the beginning", [](Assignment& a) { a.start_step = -1; },
       "after step -1 of 6"},
      {"nothing left to train", [](Assignment& a) { a.start_step = 6; }, "after step 6 of 6"},
      {"no state to start from", [](Assignment& a) { a.start_step = 3; },
       "after step 3 from the state after step 0"},
      {"state of another step",
       [](Assignment& a) {
         a.start_step = 3;
         a.checkpoint.emplace().step = 2;
       },
       "after step 3 from the state after step 2"},
      {"state that is not asked for", [](Assignment& a) { a.checkpoint.emplace().step = 2; },
       "after step 0 from the state after step 2"},
  };
  for (const Hostile& hostile : cases) {
    Assignment assignment = TestAssignment(spec, ends, 1);
    ASSERT_TRUE(MakeStagePlan(assignment, 0, 1).ok());
    hostile.spoil(assignment);
    const auto plan = MakeStagePlan(assignment, 0, 1);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << hostile.what;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(hostile.message)) << hostile.what;
  }
}

}  // namespace
}  // namespace longhaul::worker
