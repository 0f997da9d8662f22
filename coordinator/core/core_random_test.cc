// Random events, sensible and stale, against what must hold whatever happens.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "coordinator/core/core.h"
#include "coordinator/core/testing/script_runner.h"
#include "coordinator/core/turn.h"
#include "gtest/gtest.h"

namespace longhaul::coordinator {
namespace {

constexpr int64_t kSteps = 4;

class Chaos {
 public:
  explicit Chaos(uint32_t seed) : seed_(seed) { state_ = Restore(CoreOptions(), {}, {}, now_); }

  void Play(int events) {
    for (int i = 0; i < events && !testing::Test::HasFailure(); ++i) {
      if (Below(150) == 0) {
        Restart();
      } else {
        Apply(Below(10) < 7 ? Sensible() : Wild());
      }
    }
  }

  int done() const { return done_; }
  int adopted() const { return adopted_; }
  int damaged() const { return damaged_; }
  int taken_back() const { return taken_back_; }

 private:
  uint64_t Below(uint64_t bound) {
    const auto bits = Philox4x32({counter_++, 0, 0, 0}, {seed_, 77});
    return RandomBelow(bound, (uint64_t{bits[0]} << 32) | bits[1]);
  }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  std::string NodeName() { return absl::StrCat("n", 1 + Below(4)); }
  std::string RunName() { return absl::StrCat("r", 1 + Below(3)); }
  Epoch AnyEpoch() { return {1, static_cast<uint32_t>(Below(6))}; }

  Event Connect(const std::string& name, bool sensible) {
    NodeConnected event;
    event.session = ++newest_session_;
    event.facts.profile.name = name;
    uint64_t& incarnation = incarnations_[name];
    const bool restarted = Below(3) == 0;
    if (restarted || incarnation == 0) ++incarnation;
    event.facts.incarnation = sensible ? incarnation : 1 + Below(incarnation);
    event.facts.data_address = sensible ? name : absl::StrCat(name, "-", Below(2));
    event.address = absl::StrCat("a:", event.session);
    if (sensible && !restarted) {
      const Place place = FindPlace(state_, name);
      if (place.run != nullptr) {
        event.attachment = control::Attachment{place.run->spec.name, place.run->epoch, place.stage,
                                               place.progress().step};
      }
    } else if (Below(2) == 0) {
      event.attachment = control::Attachment{RunName(), AnyEpoch(), static_cast<int>(Below(3)), 1};
    }
    return event;
  }

  // What a stage of an active run would say next.
  Event OfStage(RunRecord& run) {
    const int stage = static_cast<int>(Below(run.plan->stages.size()));
    const uint64_t session = SessionOf(state_, run, stage);
    StageProgress& progress = run.progress[static_cast<size_t>(stage)];
    const std::string& name = run.spec.name;
    if (session == 0) return Connect(run.plan->stages[static_cast<size_t>(stage)].node, true);
    if (run.phase == RunPhase::kPreparing) {
      if (!run.checkpoint.has_value() || Below(6) > 0) return StageReady{session, name, run.epoch};
      return StageFailed{session,
                         name,
                         run.epoch,
                         stage,
                         run.start_step,
                         absl::DataLossError("d"),
                         Pick(run.checkpoint->shards).sha256};
    }
    if (Below(60) == 0) {
      return StageFailed{session, name, run.epoch, stage, 1, absl::UnavailableError("x")};
    }
    if (progress.step < kSteps && Below(3) > 0) {
      control::StepReport report{.run = name,
                                 .epoch = run.epoch,
                                 .stage = stage,
                                 .stages = GroupCount(run),
                                 .step = progress.step + 1};
      return StepReported{session, report};
    }
    const int64_t step = run.stop_requested ? EpochStep(run) : kSteps;
    if (progress.step < step) return NodeHeartbeat{session};
    if (Below(2) == 0) return Shard(session, run, stage, step);
    const bool stored = run.commits.contains(step) || run.pending_shards[step].contains(stage) ||
                        (run.checkpoint.has_value() && run.checkpoint->step >= step);
    if (!stored) return Shard(session, run, stage, step);
    return StageEnded{session, name, run.epoch, stage, step};
  }

  static Event Shard(uint64_t session, const RunRecord& run, int stage, int64_t step) {
    return ShardStored{session, run.spec.name, run.epoch,
                       stage,   step,          {absl::StrCat("h", stage), 1, {}}};
  }

  Event AnswerPlan() {
    const size_t index = Below(plans_.size());
    AskedPlan& asked = plans_[index];
    const RequestPlan request = asked.request;
    const auto run = state_.runs.find(request.run);
    answers_another_ = !std::exchange(asked.answered, true) && run != state_.runs.end() &&
                       run->second.sequence != asked.sequence;
    if (Below(5) > 0) plans_.erase(plans_.begin() + static_cast<ptrdiff_t>(index));
    if (Below(6) == 0 || request.request.nodes.empty()) {
      return PlanMade{request.run, request.epoch, absl::FailedPreconditionError("no")};
    }
    Plan plan;
    const size_t stages = 1 + Below(std::min<size_t>(request.request.nodes.size(), 2));
    for (size_t i = 0; i < stages; ++i) {
      plan.stages.emplace_back().node = request.request.nodes[i].name;
    }
    return PlanMade{request.run, request.epoch, plan};
  }

  Event AnswerCommit() {
    const size_t index = Below(commits_.size());
    const checkpoint::Manifest manifest = commits_[index];
    commits_.erase(commits_.begin() + static_cast<ptrdiff_t>(index));
    const bool good = Below(8) > 0;
    if (good) committed_.insert({manifest.run, manifest.step});
    return ManifestCommitted{manifest.run, manifest.epoch, manifest.step,
                             good ? absl::OkStatus() : absl::ResourceExhaustedError("full")};
  }

  Event Sensible() {
    if (!plans_.empty() && Below(2) == 0) return AnswerPlan();
    if (!commits_.empty() && Below(2) == 0) return AnswerCommit();
    std::vector<RunRecord*> active;
    for (auto& [name, run] : state_.runs) {
      if (IsActive(run)) active.push_back(&run);
    }
    if (!active.empty() && Below(8) > 0) return OfStage(*Pick(active));
    switch (Below(4)) {
      case 0:
        return Start();
      case 1:
        return Resume();
      case 2:
        return Connect(NodeName(), true);
      default:
        return NodeHeartbeat{1 + Below(newest_session_ + 1)};
    }
  }

  Event Resume() {
    ResumeRun event{++newest_request_, RunName(), 0};
    if (Below(3) == 0) event.step = static_cast<int64_t>(Below(kSteps));
    return event;
  }

  Event Start() {
    StartRun event{++newest_request_, {}};
    event.spec.name = RunName();
    event.spec.train.steps = kSteps;
    event.spec.train.global_batch = 1;
    event.spec.model.context = 1;
    if (Below(2) == 0 && !state_.runs.contains(event.spec.name)) {
      event.spec.from = "given";
      event.checkpoint.emplace().run = event.spec.name;
      event.checkpoint->shards.push_back({"given", 1, {}});
      committed_.insert({event.spec.name, 0});
      given_[event.request] = event.spec.name;
    }
    return event;
  }

  Event Wild() {
    const uint64_t session = newest_session_ > 8 ? newest_session_ - Below(8) : 1;
    const int stage = static_cast<int>(Below(3));
    const int64_t step = static_cast<int64_t>(Below(kSteps + 2));
    switch (Below(15)) {
      case 0:
        return NodeDisconnected{session, "gone"};
      case 1:
        return StageReady{session, RunName(), AnyEpoch()};
      case 2:
        return ShardStored{session, RunName(), AnyEpoch(), stage, step, {"h", 1, {}}};
      case 3:
        return StageEnded{session, RunName(), AnyEpoch(), stage, step};
      case 4:
        if (Below(4) > 0) return Tick{};
        return StageFailed{session, RunName(), AnyEpoch(),
                           stage,   step,      absl::UnavailableError("y")};
      case 5:
        return StopRun{++newest_request_, RunName()};
      case 6:
        if (Below(6) > 0) return NodeHeartbeat{session};
        return DrainNode{++newest_request_, NodeName()};
      case 7:
        return Connect(NodeName(), Below(2) == 0);
      case 8:
        return ManifestCommitted{RunName(), AnyEpoch(), step, absl::InternalError("z")};
      case 9:
        return PlanMade{RunName(), AnyEpoch(), absl::FailedPreconditionError("stale")};
      default:
        now_ += absl::Milliseconds(static_cast<int64_t>(Below(1500)));
        return Tick{};
    }
  }

  void Restart() {
    std::vector<NodeRecord> nodes;
    std::vector<RunRecord> runs;
    for (const auto& [name, record] : stored_nodes_) nodes.push_back(record);
    for (const auto& [name, record] : stored_runs_) runs.push_back(record);
    state_ = Restore(state_.options, nodes, runs, now_);
    sessions_.clear();
    plans_.clear();
    commits_.clear();
  }

  void Apply(const Event& event) {
    const auto epochs_before = Epochs();
    if (const auto* gone = std::get_if<NodeDisconnected>(&event)) sessions_.erase(gone->session);
    for (const Action& action : Step(state_, event, now_)) {
      Note(event, action);
      ASSERT_FALSE(ToText(action).empty());
    }
    for (const auto& [name, epoch] : Epochs()) {
      const auto before = epochs_before.find(name);
      if (before == epochs_before.end()) continue;
      ASSERT_GE(epoch, before->second) << name;
    }
    // A plan that was made for an earlier run of the name is not one for this.
    ASSERT_TRUE(!std::exchange(answers_another_, false) || epochs_before == Epochs());
    CheckState();
  }

  std::map<std::string, Epoch> Epochs() const {
    std::map<std::string, Epoch> epochs;
    for (const auto& [name, run] : state_.runs) epochs[name] = run.epoch;
    return epochs;
  }

  void Note(const Event& event, const Action& action) {
    if (const auto* persist = std::get_if<PersistRun>(&action)) {
      ASSERT_TRUE(state_.runs.contains(persist->run));
      stored_runs_[persist->run] = Durable(state_.runs[persist->run]);
    } else if (const auto* node = std::get_if<PersistNode>(&action)) {
      stored_nodes_[node->node] = Durable(state_.nodes[node->node]);
    } else if (const auto* accept = std::get_if<AcceptNode>(&action)) {
      const std::string& name = std::get<NodeConnected>(event).facts.profile.name;
      for (const auto& [session, owner] : sessions_) {
        ASSERT_NE(owner, name) << "sessions " << session << " and " << accept->session;
      }
      sessions_[accept->session] = name;
    } else if (const auto* refuse = std::get_if<RefuseNode>(&action)) {
      sessions_.erase(refuse->session);
    } else if (const auto* assign = std::get_if<Assign>(&action)) {
      ASSERT_TRUE(sessions_.contains(assign->session));
      const Place place = FindPlace(state_, sessions_[assign->session]);
      ASSERT_NE(place.run, nullptr);
      ASSERT_EQ(place.run->spec.name, assign->run);
      ASSERT_EQ(place.stage, assign->stage);
    } else if (const auto* plan = std::get_if<RequestPlan>(&action)) {
      plans_.push_back({*plan, state_.runs.at(plan->run).sequence});
    } else if (const auto* commit = std::get_if<CommitManifest>(&action)) {
      commits_.push_back(commit->manifest);
    } else if (const auto* reply = std::get_if<Reply>(&action)) {
      ASSERT_LE(reply->request, newest_request_);
      ASSERT_TRUE(answered_.insert(reply->request).second) << reply->request;
      ASSERT_TRUE(!reply->status.ok() || !reply->text.empty());
      const auto given = given_.find(reply->request);
      // Whoever gave the weights of a run that is refused takes them back.
      if (given != given_.end() && !reply->status.ok()) {
        ASSERT_FALSE(state_.runs.contains(given->second)) << given->second;
        committed_.erase({given->second, 0});
        ++taken_back_;
      }
    }
  }

  void CheckState() {
    std::set<std::string> busy;
    for (const auto& [name, run] : state_.runs) {
      if (run.state == RunState::kDone) {
        ASSERT_TRUE(run.checkpoint.has_value());
        ASSERT_EQ(run.checkpoint->step, kSteps);
        ASSERT_TRUE(committed_.contains({name, kSteps}));
        ++done_;
      }
      ASSERT_EQ(IsActive(run), run.state == RunState::kRunning) << name;
      const bool rests = run.state != RunState::kRunning && run.state != RunState::kPending;
      ASSERT_EQ(run.phase == RunPhase::kIdle, rests && !run.waiter.has_value());
      ASSERT_TRUE(!run.waiter.has_value() || run.phase == RunPhase::kPlanning);
      const auto stored = stored_runs_.find(name);
      if (stored != stored_runs_.end()) {
        ASSERT_EQ(stored->second.state, run.state);
        ASSERT_EQ(stored->second.checkpoint.has_value(), run.checkpoint.has_value());
        ASSERT_EQ(stored->second.other_checkpoints, run.other_checkpoints);
      }
      ASSERT_TRUE(!run.checkpoint.has_value() || committed_.contains({name, run.checkpoint->step}));
      int64_t step = -1;
      for (const OtherCheckpoint& other : run.other_checkpoints) {
        ASSERT_GT(other.manifest.step, step);
        step = other.manifest.step;
        ASSERT_TRUE(committed_.contains({name, step}));
        ASSERT_TRUE(!run.checkpoint.has_value() || run.checkpoint->step != step);
        damaged_ += !other.damage.empty();
      }
      if (!IsActive(run)) continue;
      if (run.phase == RunPhase::kAdopting) ++adopted_;
      ASSERT_TRUE(run.plan.has_value());
      ASSERT_FALSE(run.plan->stages.empty());
      ASSERT_EQ(run.progress.size(), run.plan->stages.size());
      ASSERT_FALSE(run.token.empty());
      for (const StagePlacement& stage : run.plan->stages) {
        ASSERT_TRUE(busy.insert(stage.node).second) << stage.node << " has two stages";
      }
      ASSERT_EQ(stored_runs_.at(name).epoch, run.epoch);
    }
    for (const auto& [name, node] : state_.nodes) {
      if (node.session == 0) continue;
      ASSERT_TRUE(sessions_.contains(node.session));
      ASSERT_EQ(sessions_[node.session], name);
    }
  }

  struct AskedPlan {
    RequestPlan request;
    uint64_t sequence = 0;  // of the run
    bool answered = false;
  };

  const uint32_t seed_;
  uint32_t counter_ = 0;
  absl::Time now_ = absl::UnixEpoch();
  State state_;
  uint64_t newest_session_ = 0;
  uint64_t newest_request_ = 0;
  std::map<std::string, uint64_t> incarnations_;
  std::map<uint64_t, std::string> sessions_;  // accepted and neither refused nor disconnected
  std::vector<AskedPlan> plans_;              // not answered, or once
  bool answers_another_ = false;  // the plan that is being answered is of a run that is gone
  std::map<uint64_t, std::string> given_;  // by request: the run that is started with its weights
  std::vector<checkpoint::Manifest> commits_;
  std::set<std::pair<std::string, int64_t>> committed_;
  std::set<uint64_t> answered_;
  std::map<std::string, NodeRecord> stored_nodes_;
  std::map<std::string, RunRecord> stored_runs_;
  int done_ = 0;
  int adopted_ = 0;
  int damaged_ = 0;
  int taken_back_ = 0;
};

TEST(CoreRandomTest, InvariantsHold) {
  int done = 0;
  int adopted = 0;
  int damaged = 0;
  int taken_back = 0;
  for (uint32_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Chaos chaos(seed);
    chaos.Play(600);
    done += chaos.done() > 0;
    adopted += chaos.adopted() > 0;
    damaged += chaos.damaged() > 0;
    taken_back += chaos.taken_back() > 0;
  }
  // The game must reach the interesting places.
  EXPECT_GT(done, 20);
  EXPECT_GT(adopted, 20);
  EXPECT_GT(damaged, 20);
  EXPECT_GT(taken_back, 20);
}

}  // namespace
}  // namespace longhaul::coordinator
