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
#include "daemon/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/test_spec.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// Steps that the test completes one by one. Thread-safe.
class FakeMetrics : public coordinator::MetricsStore {
 public:
  absl::Status Record(const std::vector<control::StepReport>&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<coordinator::CompletedStep>> CompletedSteps(const std::string&,
                                                                         int64_t after,
                                                                         int limit) override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<coordinator::CompletedStep> steps;
    for (int64_t s = after + 1; s <= newest_ && static_cast<int>(steps.size()) < limit; ++s) {
      coordinator::CompletedStep& step = steps.emplace_back();
      step.step = s;
      step.loss = 10.0 / static_cast<double>(s);
      step.tokens = 512;
      step.seconds = 0.5;
    }
    return steps;
  }
  absl::StatusOr<std::vector<control::StepReport>> NewestReports(const std::string&,
                                                                 const Epoch& epoch) override {
    control::StepReport report;
    report.epoch = epoch;
    report.stage = 1;
    report.step = 9;
    report.total_seconds = 2;
    return std::vector<control::StepReport>{report};
  }
  absl::StatusOr<coordinator::RunFigures> Figures(const std::string&) override {
    std::lock_guard<std::mutex> lock(mutex_);
    coordinator::RunFigures figures;
    figures.step = newest_;
    figures.tokens_per_second = 1000;
    return figures;
  }
  void Complete(int64_t newest) {
    std::lock_guard<std::mutex> lock(mutex_);
    newest_ = newest;
  }

 private:
  std::mutex mutex_;
  int64_t newest_ = 0;  // guarded by mutex_
};

// Holds a state that the test changes; answers requests with their own words.
class FakeHost : public coordinator::CoordinatorHost {
 public:
  void Stop() override {}
  uint64_t NewSession() override { return 1; }
  bool Post(coordinator::Event) override { return true; }
  absl::StatusOr<std::string> Request(PersonEvent event, absl::Time) override {
    if (const auto* start = std::get_if<coordinator::StartRun>(&event)) {
      return absl::StrCat("started ", start->spec.name);
    }
    if (const auto* stop = std::get_if<coordinator::StopRun>(&event)) {
      return absl::StrCat("stopping ", stop->run);
    }
    if (const auto* resume = std::get_if<coordinator::ResumeRun>(&event)) {
      return absl::StrCat("resuming ", resume->run, " with ", resume->stages, " from ",
                          resume->step.value_or(-1));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("cannot drain ", std::get<coordinator::DrainNode>(event).node));
  }
  coordinator::State Snapshot() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }
  coordinator::State SnapshotRun(const std::string&) const override { return Snapshot(); }
  uint64_t version() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return version_;
  }
  uint64_t WaitForChange(uint64_t seen, absl::Time deadline) override {
    std::unique_lock<std::mutex> lock(mutex_);
    RealClock().WaitUntil(lock, changed_, deadline, [&] { return version_ != seen; });
    return version_;
  }
  coordinator::MetricsStore& metrics() override { return metrics_; }
  coordinator::Checkpoints& checkpoints() override { return *no_checkpoints_; }
  absl::Status health() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return health_;
  }
  void SetHealth(const absl::Status& health) {
    std::lock_guard<std::mutex> lock(mutex_);
    health_ = health;
  }
  void SetCheckpoints(const checkpoint::Manifest& newest,
                      const std::vector<coordinator::OtherCheckpoint>& others) {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.runs["first"].checkpoint = newest;
    state_.runs["first"].other_checkpoints = others;
  }
  void SetReason(const std::string& reason, const std::string& checkpoint_problem) {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.runs["first"].reason = reason;
    state_.runs["first"].checkpoint_problem = checkpoint_problem;
  }
  // As one change.
  void Set(coordinator::RunState run_state, int64_t completed) {
    std::lock_guard<std::mutex> lock(mutex_);
    metrics_.Complete(completed);
    coordinator::RunRecord& run = state_.runs["first"];
    run.spec = run::ExampleSpec();
    run.state = run_state;
    run.epoch = {1, 2};
    run.plan.emplace();
    run.plan->stages.resize(2);
    run.plan->stages[0].node = "b1";
    run.plan->stages[1].node = "b2";
    run.plan->step_seconds = 0.25;
    coordinator::NodeRecord& node = state_.nodes["b2"];
    node.facts.profile.name = "b2";
    node.facts.profile.site = "berlin";
    node.state = coordinator::NodeState::kConnected;
    ++version_;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  coordinator::State state_;  // guarded by mutex_
  uint64_t version_ = 0;      // guarded by mutex_
  absl::Status health_;       // guarded by mutex_
  FakeMetrics metrics_;
  std::unique_ptr<coordinator::Checkpoints> no_checkpoints_;
};

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
  EXPECT_EQ(run.steps(), 200u);
  EXPECT_EQ(run.predicted_step_seconds(), 0.25);
  EXPECT_EQ(run.stage_count(), 2u);
  ASSERT_EQ(run.stages_size(), 2);
  EXPECT_EQ(run.stages(1).node(), "b2");
  EXPECT_EQ(run.stages(1).site(), "berlin");
  EXPECT_EQ(run.stages(1).total_seconds(), 2);
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
    const std::string json = checkpoint::ToJson(manifest(step));
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder, step, ".json"), json).ok());
  }
  host_.SetCheckpoints(manifest(10), {{manifest(20), "stage 1's shard"}});
  v1::ListCheckpointsRequest request;
  request.set_run("first");
  v1::ListCheckpointsResponse response;
  ASSERT_TRUE(stub_->ListCheckpoints(Context().get(), request, &response).ok());
  EXPECT_THAT(response.notes(),
              testing::ElementsAre("", "damaged: stage 1's shard", HasSubstr("left behind")));
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

}  // namespace
}  // namespace longhaul::daemon
