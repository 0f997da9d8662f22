#include "coordinator/host/host_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "coordinator/host/assignment.h"

namespace longhaul::coordinator {
namespace {

// What is written in one transaction; more makes it no cheaper, and a person waits for it.
constexpr size_t kBatchMax = 1024;

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

// Carries out one effect, once all that its batch changed is durable. What is gathered into the
// batch itself has no effect of its own.
struct HostLoop::Perform {
  HostLoop& host;

  void Send(uint64_t session, control::ToWorker message) const {
    host.dependencies_.sink->Send(session, std::move(message));
  }
  void operator()(const Action& a) const { std::visit(*this, a); }
  void operator()(const Message& m) const { Send(m.session, m.message); }
  void operator()(const CommitWork& work) const { host.committing_->Submit(work); }
  void operator()(const PersistRun&) const {}
  void operator()(const PersistNode&) const {}
  void operator()(const RecordStep&) const {}
  void operator()(const AcknowledgeStep&) const {}
  void operator()(const Assign&) const {}
  void operator()(const CommitManifest&) const {}
  void operator()(const AcceptNode& a) const {
    Send(a.session, control::Accepted{host.options_.core.lease, host.options_.heartbeat_every});
  }
  void operator()(const RefuseNode& a) const {
    Send(a.session, control::Refused{OwnCopy(a.reason), a.retry});
  }
  void operator()(const StartTraining& a) const {
    Send(a.session, control::Start{a.run, a.epoch, a.rendezvous});
  }
  void operator()(const RequestStop& a) const { Send(a.session, control::Stop{a.run, a.epoch}); }
  void operator()(const AbortStage& a) const {
    Send(a.session, control::Abort{a.run, a.epoch, a.reason});
  }
  void operator()(const ReleaseStage& a) const {
    Send(a.session, control::Released{a.run, a.epoch});
  }
  void operator()(const RequestPlan& a) const { host.planning_->Submit(a); }
  void operator()(const PruneCheckpoints& a) const { host.committing_->Submit(a); }
  void operator()(const DropShards& a) const { host.committing_->Submit(a); }
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
    if (RequestOf(state_, *event) != 0) {
      HandleAlone(*event);
    } else {
      Handle(*event);
    }
  }
  Flush();
}

std::optional<Event> HostLoop::NextEvent() {
  while (true) {
    NoteTurn();
    if (clock_.Now() >= next_tick_) {
      // Behind the heartbeats that wait already; a full queue is no time to lose nodes.
      events_.TryPush(Tick{});
      next_tick_ = clock_.Now() + options_.tick_every;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) return std::nullopt;
      for (std::deque<Event>* first : {&answers_, &people_}) {
        if (first->empty()) continue;
        Event event = std::move(first->front());
        first->pop_front();
        return event;
      }
    }
    std::optional<Event> event = events_.Pop(absl::InfinitePast());
    if (!event.has_value() && !batch_.empty()) {
      Flush();  // may take long: somebody may have come meanwhile
      continue;
    }
    if (!event.has_value()) event = events_.Pop(next_tick_);
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

bool HostLoop::AddPerson(Event event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (people_.size() >= kPeopleMax) return false;
    people_.push_back(std::move(event));
  }
  events_.TryPush(Tick{});  // as above
  return true;
}

void HostLoop::Handle(const Event& event) {
  Apply(event, batch_);
  if (batch_.effects.size() + batch_.reports.size() >= kBatchMax) Flush();
}

void HostLoop::HandleAlone(const Event& event) {
  Flush();
  State before = state_;
  Batch batch;
  Apply(event, batch);
  const absl::Status persisted = Persist(batch, /*once=*/true);
  if (!persisted.ok()) return Undo(event, std::move(before), persisted);
  for (const Effect& effect : batch.effects) std::visit(Perform{*this}, effect);
  Changed();
}

void HostLoop::Apply(const Event& event, Batch& batch) {
  std::vector<Action> actions;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    actions = Step(state_, event, clock_.Now());
  }
  for (Action& action : actions) Add(std::move(action), batch);
}

void HostLoop::Add(Action action, Batch& batch) {
  if (auto* run = std::get_if<PersistRun>(&action)) {
    batch.runs.insert(std::move(run->run));
  } else if (auto* node = std::get_if<PersistNode>(&action)) {
    batch.nodes.insert(std::move(node->node));
  } else if (auto* step = std::get_if<RecordStep>(&action)) {
    batch.reports.push_back(std::move(step->report));
  } else if (auto* acknowledge = std::get_if<AcknowledgeStep>(&action)) {
    const auto is_same = [&](const AcknowledgeStep& a) {
      return a.session == acknowledge->session && a.run == acknowledge->run &&
             a.epoch == acknowledge->epoch;
    };
    auto& all = batch.acknowledgements;
    const auto same = std::find_if(all.begin(), all.end(), is_same);
    if (same == all.end()) {
      all.push_back(std::move(*acknowledge));
    } else {
      same->step = acknowledge->step;  // a session reports in the order of steps
    }
  } else if (const auto* assign = std::get_if<Assign>(&action)) {
    batch.effects.push_back(Message{assign->session, FillAssignment(state_, *assign)});
  } else if (auto* commit = std::get_if<CommitManifest>(&action)) {
    run::RunSpec spec = state_.runs.at(commit->manifest.run).spec;
    batch.effects.push_back(CommitWork{std::move(commit->manifest), std::move(spec)});
  } else {
    batch.effects.push_back(std::move(action));
  }
}

void HostLoop::Flush() {
  const Batch batch = std::exchange(batch_, {});
  if (!Persist(batch, /*once=*/false).ok()) return;
  // Before anything is performed: the steps of a checkpoint are never trained again, and a worker
  // that is released may forget its reports.
  if (!batch.reports.empty()) {
    const absl::Status written =
        Persevere([&] { return dependencies_.metrics->Record(batch.reports); });
    if (!written.ok()) return;
  }
  for (const AcknowledgeStep& a : batch.acknowledgements) {
    dependencies_.sink->Send(a.session, control::StepAcknowledged{a.run, a.epoch, a.step});
  }
  for (const Effect& effect : batch.effects) std::visit(Perform{*this}, effect);
  if (!batch.reports.empty() || !batch.effects.empty() || !batch.runs.empty() ||
      !batch.nodes.empty()) {
    Changed();
  }
}

absl::Status HostLoop::Persist(const Batch& batch, bool once) {
  if (batch.runs.empty() && batch.nodes.empty()) return absl::OkStatus();
  std::vector<const NodeRecord*> nodes;
  std::vector<const RunRecord*> runs;
  for (const std::string& name : batch.nodes) {
    const auto node = state_.nodes.find(name);
    if (node != state_.nodes.end()) nodes.push_back(&node->second);
  }
  for (const std::string& name : batch.runs) {
    const auto run = state_.runs.find(name);
    if (run != state_.runs.end()) runs.push_back(&run->second);
  }
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
    HandleAlone(PlanMade{plan->run, plan->epoch, refusal});
  }
  requests_.Resolve(request, refusal);
}

absl::Status HostLoop::Persevere(const std::function<absl::Status()>& write) {
  while (true) {
    NoteTurn();
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

void HostLoop::NoteTurn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  turned_at_ = clock_.Now();
}

void HostLoop::Changed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++version_;
  changed_.notify_all();
}

}  // namespace longhaul::coordinator
