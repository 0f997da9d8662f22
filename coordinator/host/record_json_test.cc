#include "coordinator/host/record_json.h"

#include <limits>
#include <string>

#include "base/json.h"
#include "coordinator/host/testing/host_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using testing::HasSubstr;

RunRecord UnusualRun() {
  RunRecord run;
  run.spec = SmallRun();
  run.sequence = 17;
  run.state = RunState::kInterrupted;
  run.reason = "node \"n2\"\n\u00e9";
  run.epoch = {3, 4000000000};
  PlanRequest request;
  request.nodes.resize(2);
  request.nodes[0].name = "n1";
  request.nodes[1].name = "n2";
  run.plan = *PlanOnAll(request);
  run.token = std::string(64, 'f');
  run.numeric_classes = {"class-a", "class-b"};
  run.stages_requested = 5;
  run.replicas_requested = 3;
  run.start_step = 1LL << 40;
  run.stop_requested = true;
  run.step_is_named = true;
  run.checkpoint_problem = "disk";
  checkpoint::Manifest manifest;
  manifest.run = "first";
  manifest.epoch = {3, 1};
  manifest.step = 2;
  manifest.tokens = 99;
  manifest.numeric_class = "class-a";
  manifest.shards = {{std::string(64, 'c'), 12, {"wte", "wpe"}}};
  run.checkpoint = manifest;
  manifest.step = 1;
  run.other_checkpoints.push_back({manifest, ""});
  manifest.step = 3;
  run.other_checkpoints.push_back({manifest, "stage 1's shard"});
  return run;
}

TEST(RecordJson, RunsKeepEveryDurableValue) {
  const RunRecord run = UnusualRun();
  const auto stored = RunFromJson(RunToJson(run));
  ASSERT_TRUE(stored.ok()) << stored.status();
  const RunRecord* const back = &stored->record;
  EXPECT_EQ(back->spec, run.spec);
  EXPECT_EQ(back->sequence, run.sequence);
  EXPECT_EQ(back->state, run.state);
  EXPECT_EQ(back->reason, run.reason);
  EXPECT_EQ(back->epoch, run.epoch);
  EXPECT_EQ(back->plan->stages[1].node, "n2");
  EXPECT_EQ(back->token, run.token);
  EXPECT_EQ(back->numeric_classes, run.numeric_classes);
  EXPECT_EQ(back->stages_requested, run.stages_requested);
  EXPECT_EQ(back->replicas_requested, run.replicas_requested);
  EXPECT_EQ(back->start_step, run.start_step);
  EXPECT_EQ(back->stop_requested, run.stop_requested);
  EXPECT_EQ(back->step_is_named, run.step_is_named);
  EXPECT_EQ(back->checkpoint_problem, run.checkpoint_problem);
  EXPECT_EQ(stored->checkpoint, (ManifestId{{3, 1}, 2}));
  ASSERT_EQ(stored->others.size(), 2u);
  EXPECT_EQ(stored->others[0].id, (ManifestId{{3, 1}, 1}));
  EXPECT_EQ(stored->others[1].id, (ManifestId{{3, 1}, 3}));
  EXPECT_EQ(stored->others[1].damage, "stage 1's shard");
}

TEST(RecordJson, AnOldRecordHoldsItsManifestsItself) {
  const RunRecord run = UnusualRun();
  std::string json = RunToJson(run);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << json;
    json.replace(at, from.size(), to);
  };
  replace("\"schema\":2", "\"schema\":1");
  replace("\"checkpoint\":{\"epoch\":{\"number\":1,\"term\":3},\"step\":2}",
          "\"checkpoint\":" + checkpoint::ToJson(*run.checkpoint));
  for (const OtherCheckpoint& other : run.other_checkpoints) {
    const std::string step = std::to_string(other.manifest.step);
    replace("\"epoch\":{\"number\":1,\"term\":3},\"step\":" + step + "}",
            "\"manifest\":" + checkpoint::ToJson(other.manifest) + "}");
  }
  const auto back = RunFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status() << json;
  EXPECT_EQ(back->record.checkpoint, run.checkpoint);
  EXPECT_EQ(back->record.other_checkpoints, run.other_checkpoints);
}

TEST(RecordJson, AnOldRecordHasOneNumericClass) {
  RunRecord run;
  run.spec = SmallRun();
  Json json = *ParseJson(RunToJson(run), 1 << 20);
  json.erase("numeric_classes");
  EXPECT_FALSE(RunFromJson(json.dump()).ok());
  json["numeric_class"] = "";
  EXPECT_TRUE(RunFromJson(json.dump())->record.numeric_classes.empty());
  json["numeric_class"] = "class-a";
  EXPECT_EQ(RunFromJson(json.dump())->record.numeric_classes, std::vector<std::string>{"class-a"});
}

TEST(RecordJson, ARunWithoutPlanAndCheckpoint) {
  RunRecord run;
  run.spec = SmallRun();
  const auto back = RunFromJson(RunToJson(run));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->record.plan.has_value());
  EXPECT_FALSE(back->checkpoint.has_value());
}

TEST(RecordJson, NodesKeepEveryDurableValue) {
  NodeRecord node;
  node.facts.profile = {.name = "n1",
                        .site = "ams",
                        .host = "h",
                        .host_cores = 8,
                        .flops_per_second = 1.0 / 3,
                        .bytes_per_second = 1e11,
                        .threads = 4,
                        .memory_bytes = 1LL << 40,
                        .process_bytes = 44 << 20,
                        .numeric_class = "class-a"};
  node.facts.incarnation = std::numeric_limits<uint64_t>::max();
  node.facts.data_address = "10.0.0.1:7000";
  node.facts.version = "0.1.0";
  node.state = NodeState::kDrained;
  node.reason = "drained";
  node.address = "10.0.0.1:999";
  const auto back = NodeFromJson(NodeToJson(node));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(NodeToJson(*back), NodeToJson(node));
  EXPECT_EQ(back->facts.incarnation, node.facts.incarnation);
  EXPECT_EQ(back->facts.profile.flops_per_second, 1.0 / 3);
  EXPECT_EQ(back->facts.profile.process_bytes, 44 << 20);
  EXPECT_EQ(back->state, NodeState::kDrained);
}

TEST(RecordJson, ANodeKeepsWhatItsCardIs) {
  NodeRecord node;
  NodeProfile& profile = node.facts.profile;
  profile.name = "n";
  profile.device_kind = DeviceKind::kCuda;
  profile.device_name = "Some Card";
  profile.device_uuid = "GPU-1";
  profile.device_memory_bytes = int64_t{24} << 30;
  profile.bfloat16_flops_per_second = 2.0 / 3;
  const auto back = NodeFromJson(NodeToJson(node));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->facts.profile.device_kind, DeviceKind::kCuda);
  EXPECT_EQ(back->facts.profile.device_name, "Some Card");
  EXPECT_EQ(back->facts.profile.device_uuid, "GPU-1");
  EXPECT_EQ(back->facts.profile.device_memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(back->facts.profile.bfloat16_flops_per_second, 2.0 / 3);
}

TEST(RecordJson, NodesOfBuildsWithoutCardsAreProcessors) {
  NodeRecord node;
  node.facts.profile.name = "n";
  node.facts.profile.device_kind = DeviceKind::kCuda;
  Json json = *ParseJson(NodeToJson(node), 1 << 20);
  for (auto& [key, value] : json.items()) {
    if (!value.is_object()) continue;
    for (const char* newer : {"device_kind", "device_name", "device_uuid", "device_memory_bytes",
                              "bfloat16_flops_per_second"}) {
      value.erase(newer);
    }
  }
  const auto back = NodeFromJson(json.dump());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->facts.profile.device_kind, DeviceKind::kCpu);
  json["profile"]["device_kind"] = "abacus";
  EXPECT_FALSE(NodeFromJson(json.dump()).ok());
}

TEST(RecordJson, BytesThatAreNotTextDoNotStopTheJournal) {
  RunRecord run;
  run.spec = SmallRun();
  run.reason = "bad \xff byte";
  EXPECT_TRUE(RunFromJson(RunToJson(run)).ok());
}

TEST(RecordJson, ErrorsNameTheKey) {
  const auto why = [](std::string json, const std::string& from, const std::string& to) {
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << json;
    json.replace(at, from.size(), to);
    const auto record = RunFromJson(json);
    EXPECT_FALSE(record.ok()) << json;
    return std::string(record.status().message());
  };
  const std::string json = RunToJson(UnusualRun());
  EXPECT_THAT(why(json, "\"state\":\"interrupted\"", "\"state\":\"asleep\""), HasSubstr("asleep"));
  EXPECT_THAT(why(json, "\"sequence\":17", "\"sequence\":-17"), HasSubstr("sequence"));
  EXPECT_THAT(why(json, "\"token\"", "\"tokn\""), HasSubstr("token"));
  EXPECT_THAT(why(json, "\"term\":3", "\"term\":5000000000"), HasSubstr("term"));
  EXPECT_FALSE(RunFromJson("").ok());
  EXPECT_FALSE(NodeFromJson("[]").ok());
}

}  // namespace
}  // namespace longhaul::coordinator
