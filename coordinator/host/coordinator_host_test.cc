#include "coordinator/host/coordinator_host.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

#include "coordinator/host/sqlite_journal.h"
#include "coordinator/host/testing/host_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

using testing::HasSubstr;

class CoordinatorHostTest : public testing::Test {
 protected:
  CoordinatorHostTest() { metrics_ = *OpenSqliteMetrics(folder_ / "metrics.db"); }

  void Open(Journal& journal, CoordinatorHostOptions options = {}) {
    options.core.token_secret = "secret";
    CoordinatorHostDependencies dependencies;
    dependencies.clock = &clock_;
    dependencies.sink = &sink_;
    dependencies.journal = &journal;
    dependencies.metrics = metrics_.get();
    dependencies.checkpoints = &checkpoints_;
    dependencies.planner = [this](const PlanRequest& request) {
      if (planner_gate_ == nullptr) return PlanOnAll(request);
      planner_at_gate_ = true;
      const std::lock_guard<std::mutex> opened(*planner_gate_);
      return PlanOnAll(request);
    };
    dependencies.log = [this](bool warning, const std::string&) { warnings_ += warning; };
    auto host = CoordinatorHost::Create(options, dependencies);
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }

  // A new stream of the worker.
  uint64_t Connect(const std::string& name, std::optional<control::Attachment> attachment = {}) {
    NodeConnected event;
    event.session = host_->NewSession();
    event.address = absl::StrCat("10.0.0.1:", event.session);
    event.facts.profile.name = name;
    event.facts.incarnation = 1;
    event.facts.data_address = absl::StrCat(name, ":7000");
    event.attachment = std::move(attachment);
    const uint64_t session = event.session;
    EXPECT_TRUE(host_->Post(std::move(event)));
    return session;
  }
  uint64_t Join(const std::string& name, std::optional<control::Attachment> attachment = {}) {
    const uint64_t session = Connect(name, std::move(attachment));
    sink_.Take<control::Accepted>(session);
    return session;
  }

  absl::StatusOr<std::string> Ask(CoordinatorHost::PersonEvent event) {
    // The host's clock stands still; a request that is not answered ends with the host.
    auto answer = std::async(std::launch::async, [&] {
      return host_->Request(std::move(event), absl::InfiniteFuture());
    });
    if (answer.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      ADD_FAILURE() << "a request was not answered";
      host_->Stop();
    }
    return answer.get();
  }
  // One worker, one run in training; returns the session.
  uint64_t Train(const run::RunSpec& spec = SmallRun()) {
    const uint64_t session = Join("n1");
    EXPECT_TRUE(Ask(StartRun{0, spec}).ok());
    const auto assignment = sink_.Take<control::Assignment>(session);
    EXPECT_EQ(assignment.token.size(), 64u);
    EXPECT_TRUE(host_->Post(StageReady{session, "first", assignment.epoch}));
    sink_.Take<control::Start>(session);
    return session;
  }
  void PostReport(uint64_t session, int stage, int stages, int64_t step) {
    control::StepReport report;
    report.run = "first";
    report.epoch = kEpoch;
    report.stage = stage;
    report.stages = stages;
    report.step = step;
    report.loss = 1.0 / static_cast<double>(step);
    report.tokens = 16;
    ASSERT_TRUE(host_->Post(StepReported{session, report}));
  }
  void Report(uint64_t session, int stage, int stages, int64_t step) {
    PostReport(session, stage, stages, step);
    EXPECT_EQ(sink_.Take<control::StepAcknowledged>(session).step, step);
  }
  void StoreShard(uint64_t session, int stage, int64_t step) {
    ASSERT_TRUE(host_->Post(
        ShardStored{session, "first", kEpoch, stage, step, {std::string(64, 'b'), 10, {"wte"}}}));
  }
  RunRecord Run(const std::string& name = "first") { return host_->Snapshot().runs.at(name); }
  // The run once `is_so`.
  RunRecord WaitForRun(const std::function<bool(const RunRecord&)>& is_so) {
    State state;
    EXPECT_TRUE(BecomesTrue([&] {
      state = host_->Snapshot();
      return state.runs.contains("first") && is_so(state.runs.at("first"));
    }));
    return state.runs["first"];
  }

  static constexpr Epoch kEpoch = {1, 1};
  TestFolder folder_;
  FakeClock clock_;
  RecordingSink sink_;
  MemoryJournal journal_;
  std::counting_semaphore<> writes_{0};  // of gated metrics
  std::unique_ptr<MetricsStore> metrics_;
  FakeCheckpoints checkpoints_;
  std::mutex* planner_gate_ = nullptr;
  std::atomic<bool> planner_at_gate_{false};
  std::atomic<int> warnings_ = 0;
  std::unique_ptr<CoordinatorHost> host_;
};

TEST_F(CoordinatorHostTest, TakesARunFromStartToDone) {
  Open(journal_);
  const uint64_t first = Join("n1");
  const uint64_t second = Join("n2");
  const auto started = Ask(StartRun{0, SmallRun()});
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_THAT(*started, HasSubstr("2 stages"));

  const auto assignment = sink_.Take<control::Assignment>(second);
  EXPECT_EQ(assignment.stage, 1);
  EXPECT_EQ(assignment.spec, SmallRun());
  ASSERT_EQ(assignment.stages.size(), 2u);
  EXPECT_EQ(assignment.stages[0].node, "n1");
  EXPECT_EQ(assignment.stages[0].data_address, "n1:7000");
  EXPECT_EQ(assignment.stages[1].range, (model::OpRange{1, 2}));
  EXPECT_EQ(assignment.link_codecs, std::vector<std::string>{"none"});
  EXPECT_EQ(assignment.token, sink_.Take<control::Assignment>(first).token);

  for (const uint64_t session : {first, second}) {
    ASSERT_TRUE(host_->Post(StageReady{session, "first", kEpoch}));
  }
  sink_.Take<control::Start>(first);
  sink_.Take<control::Start>(second);
  for (int64_t step = 1; step <= 3; ++step) {
    Report(second, 1, 2, step);
    Report(first, 0, 2, step);
  }
  StoreShard(first, 0, 3);
  StoreShard(second, 1, 3);
  ASSERT_TRUE(host_->Post(StageEnded{first, "first", kEpoch, 0, 3}));
  ASSERT_TRUE(host_->Post(StageEnded{second, "first", kEpoch, 1, 3}));
  sink_.Take<control::Released>(first);
  sink_.Take<control::Released>(second);
  EXPECT_EQ(Run().state, RunState::kDone);
  EXPECT_EQ(Run().checkpoint->tokens, 3 * 4 * 4);
  const auto steps = host_->metrics().CompletedSteps("first", 0, 10);
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 3u);
  EXPECT_EQ((*steps)[2].loss, 1.0 / 3);
}

TEST_F(CoordinatorHostTest, AKilledCoordinatorGoesOnFromItsFiles) {
  std::unique_ptr<Journal> journal = *OpenSqliteJournal(folder_ / "journal.db");
  Open(*journal);
  const uint64_t session = Train();
  Report(session, 0, 1, 1);
  const RunRecord before = Run();
  // What SIGKILL leaves is what the files hold at this moment.
  std::filesystem::create_directory(folder_ / "copy");
  for (const char* name : {"journal.db", "journal.db-wal", "metrics.db", "metrics.db-wal"}) {
    std::filesystem::copy_file(folder_ / name, folder_ / "copy" + ("/" + std::string(name)));
  }
  host_.reset();

  std::unique_ptr<Journal> copy = *OpenSqliteJournal(folder_ / "copy/journal.db");
  metrics_ = *OpenSqliteMetrics(folder_ / "copy/metrics.db");
  Open(*copy);
  EXPECT_EQ(Run().phase, RunPhase::kAdopting);
  EXPECT_EQ(Run().epoch, before.epoch);
  EXPECT_EQ(Run().token, before.token);
  EXPECT_EQ(Run().spec, before.spec);
  const uint64_t again = Join("n1", control::Attachment{"first", kEpoch, 0, 2});
  sink_.Take<control::Start>(again);
  Report(again, 0, 1, 1);
  Report(again, 0, 1, 2);
  EXPECT_EQ(Run().phase, RunPhase::kTraining);
  EXPECT_EQ(host_->metrics().CompletedSteps("first", 0, 10)->size(), 2u);
  host_.reset();  // before its journal
}

TEST_F(CoordinatorHostTest, AFullDiskUndoesWhatAPersonAsked) {
  Open(journal_);
  Train();
  journal_.SetFailure(absl::ResourceExhaustedError("journal.db: disk full"));
  const auto stopped = Ask(StopRun{0, "first"});
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(stopped.status().message()), HasSubstr("nothing was done"));
  EXPECT_EQ(Run().phase, RunPhase::kTraining);
  EXPECT_FALSE(Run().stop_requested);
  journal_.SetFailure(absl::OkStatus());
  EXPECT_TRUE(Ask(StopRun{0, "first"}).ok());
  EXPECT_TRUE(Run().stop_requested);
}

TEST_F(CoordinatorHostTest, AFullDiskLeavesNoHalfStartedRun) {
  Open(journal_);
  const uint64_t session = Join("n1");
  journal_.SetFailure(absl::ResourceExhaustedError("journal.db: disk full"));
  const auto started = Ask(StartRun{0, SmallRun()});
  EXPECT_EQ(started.status().code(), absl::StatusCode::kResourceExhausted) << started.status();
  EXPECT_TRUE(host_->Snapshot().runs.empty());
  EXPECT_EQ(sink_.CountOf(session), 0u);
  journal_.SetFailure(absl::OkStatus());
  EXPECT_TRUE(Ask(StartRun{0, SmallRun()}).ok());
}

TEST_F(CoordinatorHostTest, AFullDiskHoldsBackWhatWorkersCause) {
  CoordinatorHostOptions options;
  options.core.lease = absl::Hours(100000);  // however far this test moves the clock
  Open(journal_, options);
  journal_.SetFailure(absl::ResourceExhaustedError("journal.db: disk full"));
  const uint64_t session = Connect("n1");
  uint64_t seen = 0;
  while (host_->health().ok()) seen = host_->WaitForChange(seen, clock_.Now());
  EXPECT_EQ(sink_.CountOf(session), 0u);
  const auto refused = Ask(StartRun{0, SmallRun()});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("journal.db: disk full"));
  journal_.SetFailure(absl::OkStatus());
  // The loop may not have begun to wait yet: time passes until it has seen enough of it.
  while (!host_->health().ok()) clock_.Advance(absl::Milliseconds(100));
  sink_.Take<control::Accepted>(session);
  EXPECT_TRUE(Ask(StartRun{0, SmallRun()}).ok());
}

TEST_F(CoordinatorHostTest, ACheckpointThatCannotBeCommittedIsShown) {
  Open(journal_);
  const uint64_t session = Train();
  checkpoints_.SetFailure(absl::ResourceExhaustedError("no space left on device"));
  StoreShard(session, 0, 1);
  const RunRecord run =
      WaitForRun([](const RunRecord& r) { return !r.checkpoint_problem.empty(); });
  EXPECT_THAT(run.reason, HasSubstr("no space left on device"));
  EXPECT_EQ(run.state, RunState::kRunning);
  EXPECT_FALSE(run.checkpoint.has_value());
  checkpoints_.SetFailure(absl::OkStatus());
  StoreShard(session, 0, 2);
  WaitForRun([](const RunRecord& r) { return r.checkpoint.has_value(); });
}

TEST_F(CoordinatorHostTest, TicksFindASilentWorker) {
  Open(journal_);
  const uint64_t session = Join("n1");
  clock_.Advance(absl::Seconds(9));
  Join("n2");  // what was posted before is handled
  EXPECT_EQ(sink_.CountOf(session), 0u);
  clock_.Advance(absl::Seconds(2));
  const auto refused = sink_.Take<control::Refused>(session);
  EXPECT_TRUE(refused.retry);
  EXPECT_THAT(std::string(refused.reason.message()), HasSubstr("silent"));
}

TEST_F(CoordinatorHostTest, ARequestNotAnsweredInTimeSaysSo) {
  Open(journal_);
  Join("n1");
  std::mutex gate;
  gate.lock();
  planner_gate_ = &gate;
  const auto late = host_->Request(StartRun{0, SmallRun()}, clock_.Now());
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  gate.unlock();
  WaitForRun([](const RunRecord& r) { return r.state == RunState::kRunning; });
}

TEST_F(CoordinatorHostTest, EndingCancelsRequests) {
  Open(journal_);
  Join("n1");
  std::mutex gate;
  gate.lock();
  planner_gate_ = &gate;
  absl::Status answer;
  std::thread person([&] { answer = Ask(StartRun{0, SmallRun()}).status(); });
  // The planner hangs, so that the host cannot be gone before the person has been answered.
  while (!planner_at_gate_) clock_.Advance(absl::ZeroDuration());
  std::thread ender([&] { host_.reset(); });
  person.join();
  EXPECT_EQ(answer.code(), absl::StatusCode::kCancelled);
  gate.unlock();
  ender.join();
}

// As when a service is restarted: streams are cut while the process still lives for a while.
TEST_F(CoordinatorHostTest, AStoppedCoordinatorTakesNoNodeForLost) {
  Open(journal_);
  const uint64_t session = Train();
  Report(session, 0, 1, 1);
  const RunRecord before = Run();
  host_->Stop();
  EXPECT_FALSE(host_->Post(NodeDisconnected{session, "cut"}));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Run().phase, RunPhase::kTraining);
  EXPECT_EQ(Ask(StopRun{0, "first"}).status().code(), absl::StatusCode::kCancelled);
  host_->Stop();
  host_.reset();

  Open(journal_);
  EXPECT_EQ(Run().phase, RunPhase::kAdopting);
  EXPECT_EQ(Run().epoch, before.epoch);
  EXPECT_EQ(Run().progress.at(0).step, 1) << "from the record of steps";
  const uint64_t again = Join("n1", control::Attachment{"first", kEpoch, 0, 1});
  sink_.Take<control::Start>(again);
  Report(again, 0, 1, 2);
  EXPECT_EQ(Run().phase, RunPhase::kTraining);
}

TEST_F(CoordinatorHostTest, ACheckpointIsCommittedWhileThePlannerIsBusy) {
  Open(journal_);
  const uint64_t session = Train();
  std::mutex gate;
  gate.lock();
  planner_gate_ = &gate;
  Join("n2");
  const auto late = host_->Request(StartRun{0, SmallRun("second")}, clock_.Now());
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  StoreShard(session, 0, 1);
  WaitForRun([](const RunRecord& r) { return r.checkpoint.has_value(); });
  EXPECT_EQ(Run("second").phase, RunPhase::kPlanning);
  gate.unlock();
  host_.reset();  // its planner may still be at the gate
}

// A worker whose steps take a millisecond says more than a disk can sync one by one.
TEST_F(CoordinatorHostTest, APersonDoesNotWaitBehindReportsAndABatchIsWrittenOnce) {
  constexpr int64_t kReports = 5000;
  metrics_ = std::make_unique<GatedMetrics>(std::move(metrics_), writes_);
  Open(journal_);
  run::RunSpec spec = SmallRun();
  spec.train.steps = kReports;
  const uint64_t session = Train(spec);
  for (int64_t step = 1; step <= kReports; ++step) PostReport(session, 0, 1, step);
  const auto late = host_->Request(StopRun{0, "first"}, clock_.Now());
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  // What was written when the person asked is finished, and nothing more.
  writes_.release(1);
  sink_.Take<control::Stop>(session);
  writes_.release(10);
  int64_t acknowledged = 0;
  while (acknowledged < kReports) {
    acknowledged = sink_.Take<control::StepAcknowledged>(session).step;
  }
  EXPECT_EQ(host_->metrics().CompletedSteps("first", 0, kReports)->size(), size_t{kReports});
}

TEST_F(CoordinatorHostTest, TheQueueOfEventsIsBounded) {
  CoordinatorHostOptions options;
  options.events_max = 8;
  Open(journal_, options);
  journal_.SetFailure(absl::ResourceExhaustedError("full"));
  Connect("n1");
  while (host_->health().ok()) host_->WaitForChange(0, clock_.Now());
  int accepted = 0;
  while (accepted < 100 && host_->Post(NodeHeartbeat{1})) ++accepted;
  EXPECT_LE(accepted, 8);
  EXPECT_FALSE(host_->Post(NodeHeartbeat{1}));
}

TEST_F(CoordinatorHostTest, DoesNotStartOnAJournalThatCannotBeRead) {
  class BadJournal : public MemoryJournal {
    absl::StatusOr<JournalContents> Load() override { return absl::DataLossError("damaged"); }
  } bad;
  CoordinatorHostDependencies dependencies;
  dependencies.clock = &clock_;
  dependencies.sink = &sink_;
  dependencies.journal = &bad;
  dependencies.metrics = metrics_.get();
  dependencies.checkpoints = &checkpoints_;
  dependencies.planner = PlanOnAll;
  dependencies.log = [](bool, const std::string&) {};
  EXPECT_EQ(CoordinatorHost::Create({}, dependencies).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace longhaul::coordinator
