// What the command line sees, over a real connection, with a host played by the test.
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "daemon/rpc/admin_server.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/fake_host.h"
#include "daemon/rpc/protocol.h"
#include "daemon/rpc/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/test_spec.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    std::filesystem::remove_all(folder_);
    host_.Set(coordinator::RunState::kRunning, 0);
    auto listening = ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {&server_}, 16);
    EXPECT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    stub_ = v1::Admin::NewStub(OpenChannel(ToString(listening_->address()), "hub", *credentials_));
  }
  ~AdminTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<grpc::ClientContext> Context() const {
    auto context = std::make_unique<grpc::ClientContext>();
    credentials_->Sign(*context);
    EndAfter(*context, absl::Seconds(60));
    return context;
  }
  grpc::Status Start(const run::RunSpec& spec, v1::StartRunResponse& response) {
    v1::StartRunRequest request;
    request.set_spec_json(run::ToJson(spec));
    return stub_->StartRun(Context().get(), request, &response);
  }
  // A complete data set of these bytes.
  std::string StoreText(const std::string& text) {
    const std::string path = folder_ + "/text";
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    const auto index = data::IndexFile(path);
    EXPECT_TRUE(datasets_.Fill(*index, [&text](uint64_t) { return text; }).ok());
    return index->Id();
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/admin_test_", getpid());
  const std::unique_ptr<Credentials> credentials_ = Credentials::FromToken("0123456789abcdef");
  FakeHost host_;
  data::DatasetStore datasets_{folder_ + "/datasets"};
  checkpoint::ShardStore shards_{folder_ + "/checkpoints"};
  AdminServer server_{{.watch_poll = absl::Milliseconds(20), .watch_steps_max = 7},
                      AdminServer::Parts{host_, datasets_, shards_, *credentials_, RealClock()}};
  std::unique_ptr<ListeningServer> listening_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

TEST_F(AdminTest, WatchShowsEveryStepOnceAndTheEndLast) {
  v1::WatchRunRequest request;
  request.set_run("first");
  request.set_after_step(5);
  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  std::thread training([this] {
    for (const int64_t completed : {3, 6, 7, 30, 31, 99}) {
      host_.Set(coordinator::RunState::kRunning, completed);
    }
    host_.Set(coordinator::RunState::kDone, 100);
  });
  v1::WatchRunResponse response;
  uint64_t expected = 6;
  std::string last_state;
  while (reader->Read(&response)) {
    if (response.has_step()) {
      EXPECT_EQ(response.step().step(), expected++);
      EXPECT_EQ(response.step().tokens_per_second(), 1024);
      last_state.clear();
    } else {
      last_state = response.summary().state();
    }
  }
  training.join();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(expected, 101u);
  EXPECT_EQ(last_state, "done");
}

TEST_F(AdminTest, WatchCanAskForTheEndAlone) {
  host_.Set(coordinator::RunState::kStopped, 50);
  v1::WatchRunRequest request;
  request.set_run("first");
  request.set_after_step(UINT64_MAX);
  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.summary().state(), "stopped");
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(AdminTest, AWatcherThatLeavesFreesItsThread) {
  v1::WatchRunRequest request;
  request.set_run("first");
  const auto context = Context();
  const auto reader = stub_->WatchRun(context.get(), request);
  v1::WatchRunResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context->TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
  listening_->Shutdown(absl::Seconds(20));
}

TEST_F(AdminTest, ARunThatWentBackIsShownWhereItIs) {
  host_.Set(coordinator::RunState::kRunning, 9);
  host_.Reach(20);
  v1::ShowRunRequest request;
  request.set_run("first");
  v1::ShowRunResponse response;
  ASSERT_TRUE(stub_->ShowRun(Context().get(), request, &response).ok());
  EXPECT_EQ(response.summary().step(), 9u);
  EXPECT_EQ(response.summary().again_up_to(), 20u);
}

TEST_F(AdminTest, GivenWeightsAreACheckpointOfStep0) {
  host_.Set(coordinator::RunState::kRunning, 9);
  const auto is_there = [this] {
    v1::ListRunsResponse runs;
    EXPECT_TRUE(stub_->ListRuns(Context().get(), {}, &runs).ok());
    EXPECT_EQ(runs.runs(0).checkpoint_step(), 0u);
    return runs.runs(0).has_checkpoint();
  };
  EXPECT_FALSE(is_there());
  host_.SetCheckpoints({"first", {}, 0, 0, "", {}}, {});
  EXPECT_TRUE(is_there());
}

TEST_F(AdminTest, CountsTheReplicasOfAStageOnce) {
  host_.Set(coordinator::RunState::kRunning, 9);
  host_.MakeReplicas();
  v1::ShowRunRequest request;
  request.set_run("first");
  v1::ShowRunResponse response;
  ASSERT_TRUE(stub_->ShowRun(Context().get(), request, &response).ok());
  EXPECT_EQ(response.summary().stage_count(), 1u);
  EXPECT_EQ(response.summary().stages_size(), 2);
}

TEST_F(AdminTest, ShowsRunsAndNodes) {
  host_.Set(coordinator::RunState::kRunning, 9);
  v1::ShowRunRequest request;
  request.set_run("first");
  v1::ShowRunResponse response;
  ASSERT_TRUE(stub_->ShowRun(Context().get(), request, &response).ok());
  const v1::RunSummary& run = response.summary();
  EXPECT_EQ(run.state(), "running");
  EXPECT_EQ(run.epoch(), "1.2");
  EXPECT_EQ(run.step(), 9u);
  EXPECT_EQ(run.again_up_to(), 0u);
  EXPECT_EQ(run.steps(), 200u);
  EXPECT_EQ(run.predicted_step_seconds(), 0.25);
  EXPECT_EQ(run.step_seconds(), 2);
  EXPECT_EQ(run.stage_count(), 2u);
  ASSERT_EQ(run.stages_size(), 2);
  EXPECT_EQ(run.stages(1).node(), "b2");
  EXPECT_EQ(run.stages(1).site(), "berlin");
  EXPECT_EQ(run.stages(1).total_seconds(), 2);
  EXPECT_EQ(run.stages(0).first_operator(), "embedding");
  EXPECT_EQ(run.stages(0).first_layer(), 0);
  EXPECT_EQ(run.stages(0).last_layer(), 5);
  EXPECT_EQ(run.stages(1).first_operator(), "loss");
  EXPECT_EQ(run.stages(1).last_operator(), "loss");
  EXPECT_EQ(run.stages(1).first_layer(), -1);
  EXPECT_THAT(run.spec_json(), HasSubstr("\"first\""));
  v1::ListRunsResponse runs;
  ASSERT_TRUE(stub_->ListRuns(Context().get(), {}, &runs).ok());
  ASSERT_EQ(runs.runs_size(), 1);
  EXPECT_EQ(runs.runs(0).run(), "first");
  v1::ListNodesResponse nodes;
  ASSERT_TRUE(stub_->ListNodes(Context().get(), {}, &nodes).ok());
  ASSERT_EQ(nodes.nodes_size(), 1);
  EXPECT_EQ(nodes.nodes(0).state(), "connected");
  EXPECT_EQ(nodes.nodes(0).run(), "first");
  EXPECT_EQ(nodes.nodes(0).stage(), 1u);
  v1::VersionResponse version;
  ASSERT_TRUE(stub_->Version(Context().get(), {}, &version).ok());
  EXPECT_EQ(version.build_version(), OwnProtocol().build);
}

TEST_F(AdminTest, AReasonSaysEverythingOnce) {
  const auto reason = [this] {
    v1::ShowRunRequest request;
    request.set_run("first");
    v1::ShowRunResponse response;
    EXPECT_TRUE(stub_->ShowRun(Context().get(), request, &response).ok());
    return response.summary().reason();
  };
  host_.SetReason("2 stages", "");
  EXPECT_EQ(reason(), "2 stages");
  host_.SetReason("2 stages", "the checkpoint of step 4 was not made: full");
  EXPECT_EQ(reason(), "2 stages; the checkpoint of step 4 was not made: full");
  host_.SetReason("the checkpoint of step 4 was not made: full; the run goes on",
                  "the checkpoint of step 4 was not made: full");
  EXPECT_EQ(reason(), "the checkpoint of step 4 was not made: full; the run goes on");
  host_.SetReason("2 stages", "");
  host_.SetHealth(absl::ResourceExhaustedError("the coordinator cannot write its journal: full"));
  EXPECT_EQ(reason(), "2 stages; the coordinator cannot write its journal: full");
  host_.Set(coordinator::RunState::kStopped, 9);
  EXPECT_EQ(reason(), "2 stages");
}

TEST_F(AdminTest, RequestsAreAnsweredByTheHost) {
  v1::StopRunRequest stop;
  stop.set_run("first");
  v1::StopRunResponse stopped;
  EXPECT_TRUE(stub_->StopRun(Context().get(), stop, &stopped).ok());
  EXPECT_EQ(stopped.text(), "stopping first");
  v1::ResumeRunRequest resume;
  resume.set_run("first");
  resume.set_stages(3);
  v1::ResumeRunResponse resumed;
  EXPECT_TRUE(stub_->ResumeRun(Context().get(), resume, &resumed).ok());
  EXPECT_EQ(resumed.text(), "resuming first with 3 from -1");
  resume.set_step(0);
  EXPECT_TRUE(stub_->ResumeRun(Context().get(), resume, &resumed).ok());
  EXPECT_EQ(resumed.text(), "resuming first with 3 from 0");
  v1::DrainNodeRequest drain;
  drain.set_node("b1");
  v1::DrainNodeResponse drained;
  const grpc::Status refused = stub_->DrainNode(Context().get(), drain, &drained);
  EXPECT_EQ(refused.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(refused.error_message(), "cannot drain b1");
}

TEST_F(AdminTest, CheckpointsComeWithWhatIsWrongWithThem) {
  const auto manifest = [](int64_t step) {
    return checkpoint::Manifest{"first", {1, 1}, step, 0, "", {}};
  };
  const std::string folder = folder_ + "/checkpoints/manifests/first/";
  ASSERT_TRUE(MakeDirectories(folder).ok());
  for (const int64_t step : {10, 20, 30}) {
    const std::string json = step == 10 ? "cut sho" : checkpoint::ToJson(manifest(step));
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder, step, ".json"), json).ok());
  }
  host_.SetCheckpoints(manifest(10), {{manifest(20), "stage 1's shard"}, {manifest(30), ""}});
  v1::ListCheckpointsRequest request;
  request.set_run("first");
  v1::ListCheckpointsResponse response;
  ASSERT_TRUE(stub_->ListCheckpoints(Context().get(), request, &response).ok());
  EXPECT_THAT(response.notes(),
              testing::ElementsAre(HasSubstr("manifest's file is damaged"),
                                   "damaged: stage 1's shard", HasSubstr("left behind")));
}

TEST_F(AdminTest, MoreCheckpointsThanAMessageHoldsComeInParts) {
  const auto manifest = [](int64_t step) {
    const std::vector<std::string> parameters(20000, std::string(150, 'p'));
    return checkpoint::Manifest{"first", {1, 1}, step,
                                0,       "",     {{std::string(64, 'a'), 1, parameters}}};
  };
  host_.SetCheckpoints(manifest(30), {{manifest(0), ""}, {manifest(10), ""}, {manifest(20), ""}});
  v1::ListCheckpointsRequest request;
  request.set_run("first");
  std::vector<std::string> listed;
  for (bool more = true; more && listed.size() <= 4;) {
    v1::ListCheckpointsResponse response;
    const grpc::Status status = stub_->ListCheckpoints(Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.manifest_json_size(), response.notes_size());
    listed.insert(listed.end(), response.manifest_json().begin(), response.manifest_json().end());
    more = response.has_next();
    request.set_from(response.next());
  }
  ASSERT_EQ(listed.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(listed[i], checkpoint::ToJson(manifest(static_cast<int64_t>(10 * i)))) << i;
  }
}

TEST_F(AdminTest, BadRequestsAreRefusedBeforeTheHost) {
  v1::StopRunRequest stop;
  stop.set_run("a/b");
  v1::StopRunResponse stopped;
  EXPECT_EQ(stub_->StopRun(Context().get(), stop, &stopped).error_code(), grpc::INVALID_ARGUMENT);
  v1::ShowRunRequest show;
  show.set_run("ghost");
  v1::ShowRunResponse shown;
  EXPECT_EQ(stub_->ShowRun(Context().get(), show, &shown).error_code(), grpc::NOT_FOUND);
  v1::ResumeRunRequest resume;
  resume.set_run("first");
  resume.set_stages(4000000000u);
  v1::ResumeRunResponse resumed;
  EXPECT_EQ(stub_->ResumeRun(Context().get(), resume, &resumed).error_code(),
            grpc::INVALID_ARGUMENT);
  grpc::ClientContext unsigned_call;
  v1::ListRunsResponse runs;
  EXPECT_EQ(stub_->ListRuns(&unsigned_call, {}, &runs).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(AdminTest, ARunIsCheckedAgainstItsData) {
  run::RunSpec spec = run::ExampleSpec();
  v1::StartRunResponse response;
  EXPECT_EQ(Start(spec, response).error_code(), grpc::FAILED_PRECONDITION);
  spec.data.id = StoreText("far too short");
  spec.data.tokens = 13;
  EXPECT_EQ(Start(spec, response).error_code(), grpc::INVALID_ARGUMENT);
  spec.data.id = StoreText(std::string(10000, 'z'));
  spec.data.tokens = 9999;
  const grpc::Status other = Start(spec, response);
  EXPECT_EQ(other.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(other.error_message(), HasSubstr("10000 tokens"));
  EXPECT_THAT(other.error_message(), HasSubstr("data.tokens is 9999"));
  spec.data.tokens = 10000;
  EXPECT_TRUE(Start(spec, response).ok());
  EXPECT_EQ(response.text(), "started first");
  spec.model.vocab = 'z';
  const grpc::Status small = Start(spec, response);
  EXPECT_EQ(small.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(small.error_message(), HasSubstr("token 122"));
  EXPECT_THAT(small.error_message(), HasSubstr("at least 123"));
}

TEST_F(AdminTest, GivenWeightsAreCommittedBeforeTheRunStarts) {
  run::RunSpec spec = run::ExampleSpec();
  spec.data.id = StoreText(std::string(10000, 'z'));
  spec.data.tokens = 10000;
  spec.from = "model";
  const auto start = [&](const std::string& name, checkpoint::Manifest manifest) {
    spec.name = name;
    v1::StartRunRequest request;
    request.set_spec_json(run::ToJson(spec));
    if (!manifest.run.empty()) request.set_checkpoint_json(checkpoint::ToJson(manifest));
    v1::StartRunResponse response;
    const grpc::Status status = stub_->StartRun(Context().get(), request, &response);
    return status.ok() ? response.text() : status.error_message();
  };
  EXPECT_THAT(start("second", {}), HasSubstr("with the checkpoint of its weights"));
  EXPECT_THAT(start("second", {"other", {}, 0, 0, "", {}}),
              HasSubstr("not that of step 0 of run second"));
  EXPECT_THAT(start("second", {"second", {}, 1, 0, "", {}}), HasSubstr("not that of step 0"));
  EXPECT_THAT(host_.committed.calls, testing::IsEmpty());
  EXPECT_EQ(start("second", {"second", {}, 0, 0, "", {}}), "started second with its weights");
  EXPECT_EQ(start("refused", {"refused", {}, 0, 0, "", {}}), "no worker");
  // Of a run that exists nothing is touched.
  EXPECT_EQ(start("first", {"first", {}, 0, 0, "", {}}), "started first with its weights");
  EXPECT_THAT(host_.committed.calls,
              testing::ElementsAre("commit second 0", "commit refused 0", "prune refused 1"));
  spec.tokenizer_files = {absl::StrCat("tokenizer.json ", std::string(64, '0'))};
  EXPECT_THAT(start("third", {"third", {}, 0, 0, "", {}}), HasSubstr("'tokenizer.json"));
}

}  // namespace
}  // namespace longhaul::daemon
