#include "coordinator/host/coordinator_host.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "coordinator/host/host_loop.h"

namespace longhaul::coordinator {

namespace {

// What the record of steps knows of the run's epoch; the journal does not hold it.
absl::Status AddProgress(MetricsStore& metrics, RunRecord& run) {
  if (!run.plan.has_value()) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const std::vector<control::StepReport> reports,
                      metrics.NewestReports(run.spec.name, run.epoch, run.start_step));
  run.progress.resize(run.plan->stages.size());
  for (const control::StepReport& report : reports) {
    const auto stage = static_cast<size_t>(report.stage);
    if (stage < run.progress.size()) run.progress[stage].step = report.step;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorHost>> CoordinatorHost::Create(
    CoordinatorHostOptions options, CoordinatorHostDependencies dependencies) {
  LH_CHECK(dependencies.clock != nullptr && dependencies.sink != nullptr &&
               dependencies.journal != nullptr && dependencies.metrics != nullptr &&
               dependencies.checkpoints != nullptr && dependencies.planner && dependencies.log,
           "a dependency is missing");
  LH_ASSIGN_OR_RETURN(JournalContents contents, dependencies.journal->Load());
  for (RunRecord& run : contents.runs) LH_RETURN_IF_ERROR(AddProgress(*dependencies.metrics, run));
  State state = Restore(options.core, std::move(contents.nodes), std::move(contents.runs),
                        dependencies.clock->Now());
  return std::unique_ptr<CoordinatorHost>(
      new HostLoop(std::move(options), std::move(dependencies), std::move(state)));
}

HostLoop::HostLoop(CoordinatorHostOptions options, CoordinatorHostDependencies dependencies,
                   State state)
    : options_(std::move(options)),
      dependencies_(std::move(dependencies)),
      clock_(*dependencies_.clock),
      requests_(clock_),
      events_(options_.events_max, clock_),
      state_(std::move(state)),
      next_tick_(clock_.Now() + options_.tick_every) {
  const WorkThread::Dependencies work = {&clock_, dependencies_.planner, dependencies_.checkpoints,
                                         [this](Event event) { AddAnswer(std::move(event)); }};
  planning_ = std::make_unique<WorkThread>(work);
  committing_ = std::make_unique<WorkThread>(work);
  NoteTurn();
  thread_ = std::thread([this] { Loop(); });
}

HostLoop::~HostLoop() {
  Stop();
  planning_.reset();
  committing_.reset();
}

void HostLoop::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  events_.Close();
  requests_.Close(absl::CancelledError("the coordinator is ending"));
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::string> HostLoop::Request(PersonEvent event, absl::Time deadline) {
  LH_RETURN_IF_ERROR(health());
  const uint64_t request = requests_.Open();
  std::visit(
      [&](auto& person) {
        person.request = request;
        if (!AddPerson(std::move(person))) {
          requests_.Resolve(
              request, absl::ResourceExhaustedError("the coordinator is overloaded; try again"));
        }
      },
      event);
  return requests_.Wait(request, deadline);
}

CoordinatorHost::Pulse HostLoop::pulse() const {
  Pulse pulse;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pulse.turned_at = turned_at_;
  }
  const std::lock_guard<std::mutex> lock(state_mutex_);
  for (const auto& [name, node] : state_.nodes) {
    pulse.nodes_connected += node.state == NodeState::kConnected;
  }
  for (const auto& [name, run] : state_.runs) {
    pulse.runs_running += run.state == RunState::kRunning;
  }
  return pulse;
}

State HostLoop::Snapshot() const {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  return state_;
}

State HostLoop::SnapshotRun(const std::string& name) const {
  State part;
  const std::lock_guard<std::mutex> lock(state_mutex_);
  const auto run = state_.runs.find(name);
  if (run == state_.runs.end()) return part;
  part.runs[name] = run->second;
  if (!run->second.plan.has_value()) return part;
  for (const StagePlacement& stage : run->second.plan->stages) {
    const auto node = state_.nodes.find(stage.node);
    if (node != state_.nodes.end()) part.nodes[stage.node] = node->second;
  }
  return part;
}

uint64_t HostLoop::version() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return version_;
}

uint64_t HostLoop::WaitForChange(uint64_t seen, absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  clock_.WaitUntil(lock, changed_, deadline, [&] { return version_ != seen || ending_; });
  return version_;
}

absl::Status HostLoop::health() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return OwnCopy(health_);
}

}  // namespace longhaul::coordinator
