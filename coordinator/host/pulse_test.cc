// What a watchdog may go by: whether the coordinator's loop turns.
#include <chrono>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/host/coordinator_host.h"
#include "coordinator/host/testing/host_testing.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

// Its writes hang, like those of a disk that does not answer, until they are let through.
class HangingJournal : public MemoryJournal {
 public:
  absl::Status Write(const std::vector<const NodeRecord*>& nodes,
                     const std::vector<const RunRecord*>& runs) override {
    begun.release();
    go_on.acquire();
    return MemoryJournal::Write(nodes, runs);
  }
  std::counting_semaphore<> begun{0};
  std::counting_semaphore<> go_on{0};
};

class PulseTest : public testing::Test {
 protected:
  PulseTest() {
    CoordinatorHostDependencies dependencies;
    dependencies.clock = &clock_;
    dependencies.sink = &sink_;
    dependencies.journal = &journal_;
    dependencies.metrics = metrics_.get();
    dependencies.checkpoints = &checkpoints_;
    dependencies.planner = PlanOnAll;
    dependencies.log = [](bool, const std::string&) {};
    host_ = *CoordinatorHost::Create({}, dependencies);
  }
  ~PulseTest() override { journal_.go_on.release(1000); }
  void Connect() {
    NodeConnected event;
    event.session = host_->NewSession();
    event.facts.profile.name = "n1";
    EXPECT_TRUE(host_->Post(std::move(event)));
  }
  bool FollowsTheClock() {
    return BecomesTrue([&] { return host_->pulse().turned_at == clock_.Now(); });
  }

  TestFolder folder_;
  FakeClock clock_;
  RecordingSink sink_;
  HangingJournal journal_;
  FakeCheckpoints checkpoints_;
  std::unique_ptr<MetricsStore> metrics_ = *OpenSqliteMetrics(folder_ / "metrics.db");
  std::unique_ptr<CoordinatorHost> host_;
};

TEST_F(PulseTest, StopsWhileTheLoopHangsAndComesBack) {
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(FollowsTheClock());
  EXPECT_EQ(host_->pulse().nodes_connected, 0);

  Connect();
  ASSERT_TRUE(journal_.begun.try_acquire_for(std::chrono::seconds(30)));
  const absl::Time hung = clock_.Now();
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(host_->pulse().turned_at, hung);
  EXPECT_EQ(host_->pulse().nodes_connected, 1);
  EXPECT_EQ(host_->pulse().runs_running, 0);

  journal_.go_on.release(1000);
  EXPECT_TRUE(FollowsTheClock());
}

TEST_F(PulseTest, GoesOnWhileTheJournalCannotBeWritten) {
  journal_.SetFailure(absl::ResourceExhaustedError("full"));
  journal_.go_on.release(1000);
  Connect();
  ASSERT_TRUE(BecomesTrue([&] { return !host_->health().ok(); }));
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = clock_.Now();
    // Again and again: when the next try is due is the loop's to say.
    EXPECT_TRUE(BecomesTrue([&] {
      clock_.Advance(absl::Minutes(1));
      return host_->pulse().turned_at > begin;
    }));
  }
}

}  // namespace
}  // namespace longhaul::coordinator
