#include "coordinator/host/host_loop.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "coordinator/host/assignment.h"

namespace longhaul::coordinator {
namespace {

// Reports written in one transaction; more make it no cheaper.
constexpr size_t kReportsMax = 1024;

// The request that an event's failure can be answered with; 0: none.
uint64_t RequestOf(const State& state, const Event& event) {
  if (const auto* start = std::get_if<StartRun>(&event)) return start->request;
  if (const auto* stop = std::get_if<StopRun>(&event)) return stop->request;
  if (const auto* resume = std::get_if<ResumeRun>(&event)) return resume->request;
  if (const auto* drain = std::get_if<DrainNode>(&event)) return drain->request;
  if (const auto* plan = std::get_if<PlanMade>(&event)) {
    const auto run = state.runs.find(plan->run);
    if (run != state.runs.end() && run->second.waiter.has_value()) {
      return run->second.waiter->request;
    }
  }
  return 0;
}

}  // namespace

// Carries out one action; Persist actions are done before.
struct HostLoop::Perform {
  HostLoop& host;

  void Send(uint64_t session, control::ToWorker message) const {
    host.dependencies_.sink->Send(session, std::move(message));
  }
  void operator()(const PersistRun&) const {}
  void operator()(const PersistNode&) const {}
  void operator()(const AcceptNode& a) const {
    Send(a.session, control::Accepted{host.options_.core.lease, host.options_.heartbeat_every});
  }
  void operator()(const RefuseNode& a) const {
    Send(a.session, control::Refused{OwnCopy(a.reason), a.retry});
  }
  void operator()(const Assign& a) const { Send(a.session, FillAssignment(host.state_, a)); }
  void operator()(const StartTraining& a) const {
    Send(a.session, control::Start{a.run, a.epoch, a.rendezvous});
  }
  void operator()(const RequestStop& a) const { Send(a.session, control::Stop{a.run, a.epoch}); }
  void operator()(const AbortStage& a) const {
    Send(a.session, control::Abort{a.run, a.epoch, a.reason});
  }
  void operator()(const ReleaseStage& a) const {
    // A worker that is free may forget its reports.
    host.FlushReports();
    Send(a.session, control::Released{a.run, a.epoch});
  }
  void operator()(const RecordStep& a) const { host.reports_.push_back(a.report); }
  void operator()(const AcknowledgeStep& a) const { host.acknowledgements_.push_back(a); }
  void operator()(const RequestPlan& a) const { host.planning_->Submit(a); }
  void operator()(const CommitManifest& a) const {
    // The steps of a checkpoint are never trained again: their reports come first.
    host.FlushReports();
    host.committing_->Submit(CommitWork{a.manifest, host.state_.runs.at(a.manifest.run).spec});
  }
  void operator()(const PruneCheckpoints& a) const { host.committing_->Submit(a); }
  void operator()(const Reply& a) const {
    if (a.status.ok()) {
      host.requests_.Resolve(a.request, a.text);
    } else {
      host.requests_.Resolve(a.request, a.status);
    }
  }
  void operator()(const Explain& a) const { host.dependencies_.log(a.warning, a.text); }
};

void HostLoop::Loop() {
  while (std::optional<Event> event = NextEvent()) {
    Handle(*event);
    if (reports_.size() >= kReportsMax) FlushReports();
  }
}

std::optional<Event> HostLoop::NextEvent() {
  while (true) {
    if (clock_.Now() >= next_tick_) {
      // Behind the heartbeats that wait already; a full queue is no time to lose nodes.
      events_.TryPush(Tick{});
      next_tick_ = clock_.Now() + options_.tick_every;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) return std::nullopt;
      if (!answers_.empty()) {
        Event answer = std::move(answers_.front());
        answers_.pop_front();
        return answer;
      }
    }
    std::optional<Event> event = events_.Pop(absl::InfinitePast());
    if (!event.has_value()) {
      FlushReports();
      event = events_.Pop(next_tick_);
    }
    if (event.has_value()) return event;
  }
}

void HostLoop::AddAnswer(Event event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(std::move(event));
  }
  events_.TryPush(Tick{});  // wakes the loop; when the queue is full it is awake
}

void HostLoop::Handle(const Event& event) {
  const uint64_t request = RequestOf(state_, event);
  std::optional<State> before;
  if (request != 0) before = state_;
  std::vector<Action> actions;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    actions = Step(state_, event, clock_.Now());
  }
  if (actions.empty()) return;
  const absl::Status persisted = Persist(actions, before.has_value());
  if (!persisted.ok()) {
    if (before.has_value()) Undo(event, *std::move(before), persisted);
    return;
  }
  for (const Action& action : actions) std::visit(Perform{*this}, action);
  Changed();
}

absl::Status HostLoop::Persist(const std::vector<Action>& actions, bool once) {
  std::set<std::string> run_names, node_names;
  for (const Action& action : actions) {
    if (const auto* run = std::get_if<PersistRun>(&action)) run_names.insert(run->run);
    if (const auto* node = std::get_if<PersistNode>(&action)) node_names.insert(node->node);
  }
  if (run_names.empty() && node_names.empty()) return absl::OkStatus();
  std::vector<const NodeRecord*> nodes;
  std::vector<const RunRecord*> runs;
  for (const std::string& name : node_names) nodes.push_back(&state_.nodes.at(name));
  for (const std::string& name : run_names) runs.push_back(&state_.runs.at(name));
  const auto write = [&] { return dependencies_.journal->Write(nodes, runs); };
  return once ? write() : Persevere(write);
}

void HostLoop::Undo(const Event& event, State before, const absl::Status& error) {
  const uint64_t request = RequestOf(before, event);
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    state_ = std::move(before);
  }
  const absl::Status refusal =
      Annotate(error, "the coordinator cannot write its journal, so nothing was done");
  dependencies_.log(true, refusal.ToString());
  if (const auto* plan = std::get_if<PlanMade>(&event)) {
    // As if the planner had refused: leaves the run as it was before the request.
    Handle(PlanMade{plan->run, plan->epoch, refusal});
  }
  requests_.Resolve(request, refusal);
}

void HostLoop::FlushReports() {
  if (!reports_.empty()) {
    const absl::Status written =
        Persevere([this] { return dependencies_.metrics->Record(reports_); });
    if (!written.ok()) return;
    reports_.clear();
    Changed();
  }
  for (const AcknowledgeStep& a : acknowledgements_) {
    dependencies_.sink->Send(a.session, control::StepAcknowledged{a.run, a.epoch, a.step});
  }
  acknowledgements_.clear();
}

absl::Status HostLoop::Persevere(const std::function<absl::Status()>& write) {
  while (true) {
    const absl::Status written = write();
    SetHealth(written);
    if (written.ok()) return written;
    std::unique_lock<std::mutex> lock(mutex_);
    const absl::Time again = clock_.Now() + options_.retry_every;
    if (clock_.WaitUntil(lock, changed_, again, [this] { return ending_; })) return written;
  }
}

void HostLoop::SetHealth(const absl::Status& status) {
  const absl::Status health =
      status.ok()
          ? absl::OkStatus()
          : absl::Status(status.code(), absl::StrCat("the coordinator cannot write its journal: ",
                                                     status.message(), "; training goes on"));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (health_ == health) return;
    health_ = OwnCopy(health);
    ++version_;
    changed_.notify_all();
  }
  dependencies_.log(!health.ok(), health.ok() ? "the coordinator's records can be written again"
                                              : std::string(health.message()));
}

void HostLoop::Changed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++version_;
  changed_.notify_all();
}

}  // namespace longhaul::coordinator
