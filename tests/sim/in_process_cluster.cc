#include "tests/sim/in_process_cluster.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/bounded_queue.h"
#include "base/check.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "checkpoint/shard.h"
#include "compute/backend/backend.h"
#include "coordinator/host/sqlite_journal.h"
#include "coordinator/plan/planner.h"
#include "gtest/gtest.h"
#include "model/family.h"
#include "tests/sim/convert.h"
#include "tests/sim/paced_transport.h"
#include "tests/sim/real_time.h"
#include "worker/comm/exchange.h"
#include "worker/host/worker_host.h"

namespace longhaul::sim {
namespace {

constexpr size_t kQueueMax = 4096;

std::string MakeText() {
  std::string text;
  for (int i = 0; text.size() < 6000; ++i) absl::StrAppend(&text, "line ", i * i % 97, " of it. ");
  return text;
}

}  // namespace

// Bulk data from the cluster's stores; away while the coordinator is.
class InProcessCluster::Remote : public worker::RemoteStore {
 public:
  Remote(InProcessCluster& cluster, std::shared_ptr<std::atomic<bool>> away)
      : cluster_(cluster), away_(std::move(away)) {}

  absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string& id, absl::Time) override {
    LH_RETURN_IF_ERROR(CheckReachable());
    return cluster_.datasets_.Index(id);
  }
  absl::StatusOr<std::string> FetchChunk(const std::string& id, uint64_t chunk,
                                         absl::Time) override {
    LH_RETURN_IF_ERROR(CheckReachable());
    return cluster_.datasets_.ReadChunk(id, chunk);
  }
  absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t, absl::Time) override {
    LH_RETURN_IF_ERROR(CheckReachable());
    return cluster_.shards_.GetShard(sha256);
  }
  absl::Status StoreShard(const std::string& sha256, absl::string_view bytes, absl::Time) override {
    LH_RETURN_IF_ERROR(CheckReachable());
    return cluster_.checkpoints_.StoreShard(sha256, bytes);
  }
  void Cancel() override { cancelled_ = true; }
  std::unique_ptr<worker::RemoteStore> MakeView() override {
    return std::make_unique<Remote>(cluster_, away_);
  }

 private:
  absl::Status CheckReachable() const {
    if (cancelled_) return absl::CancelledError("the stage was given up");
    if (*away_) return absl::UnavailableError("the coordinator is away");
    return absl::OkStatus();
  }

  InProcessCluster& cluster_;
  const std::shared_ptr<std::atomic<bool>> away_;
  std::atomic<bool> cancelled_{false};
};

// One worker: its host, its control stream, and the thread that delivers what the coordinator says.
class InProcessCluster::Worker : public worker::ControlLink {
 public:
  Worker(InProcessCluster& cluster, worker::WorkerHostOptions options)
      : cluster_(cluster),
        name_(options.facts.name),
        address_(options.facts.data_address),
        remote_(cluster, away_),
        router_(cluster.clock_),
        transport_(MakePacedTransport(cluster.network_.MakeTransport(), cluster.clock_)),
        inbox_(kQueueMax, cluster.clock_) {
    worker::WorkerHostDependencies dependencies;
    dependencies.clock = &cluster.clock_;
    dependencies.control = this;
    dependencies.remote = &remote_;
    dependencies.transport = transport_.get();
    dependencies.router = &router_;
    dependencies.make_backend = [threads = options.facts.threads] {
      return compute::MakeCpuBackend(threads);
    };
    dependencies.log = [](worker::LogLevel, const std::string&) {};
    host_ = std::make_unique<worker::WorkerHost>(std::move(options), std::move(dependencies));
    cluster.network_.Listen(address_, &router_);
    thread_ = std::thread([this] {
      while (auto message = inbox_.Pop(absl::InfiniteFuture())) host_->OnMessage(*message);
    });
  }

  ~Worker() override {
    Disconnect();
    inbox_.Close();
    thread_.join();
    host_.reset();
    cluster_.network_.Stop(address_);
  }

  bool Send(const worker::ToCoordinator& message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return coordinator_ != nullptr && coordinator_->Post(ToEvent(session_, message));
  }

  void Connect(coordinator::CoordinatorHost& coordinator) {
    *away_ = false;
    const uint64_t session = coordinator.NewSession();
    const worker::Register hello = host_->MakeRegister();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      coordinator_ = &coordinator;
      session_ = session;
    }
    LH_CHECK(coordinator.Post(ToEvent(session, hello)));
    // A person's request would overtake it.
    const auto is_ours = [&](const auto& node) { return node.second.session == session; };
    const auto is_known = [&] { return absl::c_any_of(coordinator.Snapshot().nodes, is_ours); };
    LH_CHECK(BecomesTrue(is_known), name_, " is not accepted");
  }

  void Disconnect() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (coordinator_ != nullptr) {
      coordinator_->Post(coordinator::NodeDisconnected{session_, "its connection closed"});
    }
    coordinator_ = nullptr;
    session_ = 0;
  }

  // The coordinator's process is gone: nobody hears of the broken stream.
  void LoseCoordinator() {
    std::lock_guard<std::mutex> lock(mutex_);
    coordinator_ = nullptr;
    session_ = 0;
    *away_ = true;
  }

  bool connected() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return coordinator_ != nullptr;
  }
  // From the coordinator's loop.
  bool Deliver(uint64_t session, const control::ToWorker& message) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (session != session_) return false;
    }
    LH_CHECK(inbox_.TryPush(control::ToWorker(message)));
    return true;
  }
  const std::string& address() const { return address_; }
  std::optional<control::Attachment> attachment() const { return host_->MakeRegister().attachment; }

 private:
  InProcessCluster& cluster_;
  const std::string name_;
  const std::string address_;
  const std::shared_ptr<std::atomic<bool>> away_ = std::make_shared<std::atomic<bool>>(false);
  Remote remote_;
  worker::ExchangeRouter router_;
  std::unique_ptr<worker::Transport> transport_;
  BoundedQueue<worker::ToWorker> inbox_;
  std::unique_ptr<worker::WorkerHost> host_;
  std::thread thread_;
  mutable std::mutex mutex_;
  coordinator::CoordinatorHost* coordinator_ = nullptr;  // guarded by mutex_; null: no stream
  uint64_t session_ = 0;                                 // guarded by mutex_
};

// Routes by session. The set of workers changes on the test's thread while the loop delivers.
class InProcessCluster::Sink : public coordinator::SessionSink {
 public:
  void Send(uint64_t session, control::ToWorker message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Worker* worker : workers_) {
      if (worker->Deliver(session, message)) return;
    }
  }
  void Add(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_.push_back(worker);
  }
  void Remove(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_.erase(std::find(workers_.begin(), workers_.end(), worker));
  }

 private:
  std::mutex mutex_;
  std::vector<Worker*> workers_;  // guarded by mutex_
};

InProcessCluster::InProcessCluster(std::string folder)
    : folder_(std::move(folder)),
      datasets_(absl::StrCat(folder_, "/data")),
      shards_(absl::StrCat(folder_, "/checkpoints")),
      checkpoints_(shards_, clock_, [](bool, const std::string&) {}),
      sink_(std::make_unique<Sink>()) {
  std::filesystem::remove_all(folder_);
  LH_CHECK(MakeDirectories(folder_).ok());
  const std::string text = MakeText();
  const std::string path = absl::StrCat(folder_, "/text");
  LH_CHECK(WriteFileAtomically(path, text).ok());
  index_ = data::IndexFile(path).value();
  const absl::Status filled = datasets_.Fill(index_, [&](uint64_t chunk) {
    return absl::StatusOr<std::string>(text.substr(chunk * data::kChunkBytes, data::kChunkBytes));
  });
  LH_CHECK(filled.ok(), filled.message());
}

InProcessCluster::~InProcessCluster() {
  while (!workers_.empty()) KillWorker(workers_.begin()->first);
  host_.reset();
  std::filesystem::remove_all(folder_);
}

coordinator::CoordinatorHost& InProcessCluster::host() {
  LH_CHECK(host_ != nullptr, "the coordinator is down");
  return *host_;
}

void InProcessCluster::StartCoordinator() {
  journal_ = coordinator::OpenSqliteJournal(absl::StrCat(folder_, "/journal.db")).value();
  metrics_ = coordinator::OpenSqliteMetrics(absl::StrCat(folder_, "/metrics.db")).value();
  coordinator::CoordinatorHostOptions options;
  options.core.token_secret = "secret";
  coordinator::CoordinatorHostDependencies dependencies;
  dependencies.clock = &clock_;
  dependencies.sink = sink_.get();
  dependencies.journal = journal_.get();
  dependencies.metrics = metrics_.get();
  dependencies.checkpoints = &checkpoints_;
  dependencies.planner = coordinator::MakePlan;
  dependencies.log = [](bool, const std::string&) {};
  host_ = coordinator::CoordinatorHost::Create(options, std::move(dependencies)).value();
  for (auto& [name, worker] : workers_) worker->Connect(*host_);
}

void InProcessCluster::KillCoordinator() {
  for (auto& [name, worker] : workers_) worker->LoseCoordinator();
  host_.reset();
  journal_.reset();
  metrics_.reset();
}

void InProcessCluster::StartWorker(const std::string& name, const std::string& site, int threads) {
  worker::WorkerHostOptions options;
  options.facts.name = name;
  options.facts.site = site;
  options.facts.host = name;
  options.facts.incarnation = ++incarnations_[name];
  options.facts.data_address = absl::StrCat("memory:", name);
  options.facts.version = "test";
  options.facts.numeric_class = compute::MakeCpuBackend(1)->numeric_class();
  options.facts.threads = options.facts.host_cores = threads;
  options.facts.memory_bytes = int64_t{1} << 30;
  options.facts.flops_per_second = 1e10;
  options.facts.bytes_per_second = 1e10;
  options.folder = absl::StrCat(folder_, "/", name);
  options.peer_silence_max = absl::Hours(1);  // what is slow is the machine that runs the test
  options.transfer_max = absl::Hours(1);
  auto worker = std::make_unique<Worker>(*this, std::move(options));
  sink_->Add(worker.get());
  if (host_ != nullptr) worker->Connect(*host_);
  workers_[name] = std::move(worker);
}

void InProcessCluster::KillWorker(const std::string& name) {
  const auto worker = workers_.find(name);
  LH_CHECK(worker != workers_.end(), name);
  sink_->Remove(worker->second.get());
  workers_.erase(worker);
}

void InProcessCluster::Disconnect(const std::string& name) { workers_.at(name)->Disconnect(); }

void InProcessCluster::Reconnect(const std::string& name) { workers_.at(name)->Connect(host()); }

void InProcessCluster::BreakLinks(const std::string& name) {
  network_.Break(workers_.at(name)->address());
}

void InProcessCluster::Ask(coordinator::CoordinatorHost::PersonEvent event) {
  const auto answer = AnswerOf(host(), std::move(event));
  ASSERT_TRUE(answer.ok()) << answer.status();
}

void InProcessCluster::StartRun(const run::RunSpec& spec) { Ask(coordinator::StartRun{0, spec}); }
void InProcessCluster::StopRun(const std::string& run) { Ask(coordinator::StopRun{0, run}); }

void InProcessCluster::ResumeRun(const std::string& run, int stages, std::optional<int64_t> step) {
  Ask(coordinator::ResumeRun{0, run, stages, step});
}

void InProcessCluster::DrainNode(const std::string& node) { Ask(coordinator::DrainNode{0, node}); }

void InProcessCluster::Advance() {
  for (auto& [name, worker] : workers_) {
    if (worker->connected()) worker->Send(worker::Heartbeat());
  }
  clock_.Advance(absl::Milliseconds(10));
  // Or simulated time outruns the work.
  PassRealTime();
}

void InProcessCluster::WaitFor(const std::string& what, const std::function<bool()>& condition) {
  const absl::Time deadline = clock_.Now() + absl::Minutes(5);
  while (!condition()) {
    ASSERT_LT(clock_.Now(), deadline) << what;
    Advance();
  }
}

void InProcessCluster::WaitForState(const std::string& run, coordinator::RunState state) {
  const std::string what = absl::StrCat("run ", run, " is ", coordinator::RunStateName(state));
  WaitFor(what, [&] {
    const coordinator::RunRecord record = Run(run);
    const bool interrupted = record.state == coordinator::RunState::kInterrupted ||
                             record.state == coordinator::RunState::kFailed;
    if (interrupted && record.state != state) ADD_FAILURE() << what << ": " << record.reason;
    return record.state == state || interrupted;
  });
}

void InProcessCluster::WaitForStep(const std::string& run, int64_t step) {
  WaitFor(absl::StrCat("run ", run, " reaches step ", step),
          [&] { return static_cast<int64_t>(Steps(run).size()) >= step; });
}

coordinator::RunRecord InProcessCluster::Run(const std::string& run) {
  const coordinator::State state = host().Snapshot();
  const auto record = state.runs.find(run);
  LH_CHECK(record != state.runs.end(), run);
  return record->second;
}

int64_t InProcessCluster::StepAt(const std::string& worker) {
  return workers_.at(worker)->attachment().value().step;
}

std::vector<coordinator::CompletedStep> InProcessCluster::Steps(const std::string& run) {
  return metrics_->CompletedSteps(run, 0, 1 << 20).value();
}

ModelState InProcessCluster::State(const std::string& run) {
  const coordinator::RunRecord record = Run(run);
  LH_CHECK(record.checkpoint.has_value(), "no checkpoint of ", run);
  const model::Graph graph = model::BuildGraph(record.spec.model).value();
  ModelState state(3 * graph.parameters.size());
  std::vector<checkpoint::MutableParameterState> wanted;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    for (int part = 0; part < 3; ++part) state[3 * p + part].resize(graph.parameters[p].elements());
    wanted.push_back({static_cast<int>(p), absl::MakeSpan(state[3 * p]),
                      absl::MakeSpan(state[3 * p + 1]), absl::MakeSpan(state[3 * p + 2])});
  }
  int decoded = 0;
  for (const checkpoint::Shard& shard : record.checkpoint->shards) {
    const std::string bytes = shards_.GetShard(shard.sha256).value();
    decoded += checkpoint::DecodeShard(graph, shard, bytes, wanted).value();
  }
  LH_CHECK(decoded == static_cast<int>(graph.parameters.size()));
  return state;
}

run::RunSpec InProcessCluster::Spec(const std::string& name) const {
  run::RunSpec spec;
  spec.name = name;
  spec.model = {"gpt2",       /*layers=*/4,   /*hidden=*/32,
                /*heads=*/2,  /*context=*/16, /*vocab=*/256,
                /*tied=*/true};
  spec.data.train = "text";
  spec.data.validation_fraction = 0.1;
  spec.data.id = index_.Id();
  spec.data.tokens = static_cast<int64_t>(index_.bytes);
  spec.train.steps = 30;
  spec.train.global_batch = 8;
  spec.train.micro_batch = 2;
  spec.train.seed = 3;
  spec.train.evaluate_every = 5;
  return spec;
}

}  // namespace longhaul::sim
