#include "daemon/worker_daemon.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "daemon/device/worker_device.h"
#include "daemon/folder.h"
#include "daemon/host_resources.h"
#include "daemon/reload_config.h"
#include "daemon/rpc/drain_request.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/exchange_server.h"
#include "daemon/rpc/grpc_transport.h"
#include "daemon/rpc/membership_client.h"
#include "daemon/rpc/protocol.h"
#include "daemon/rpc/storage_client.h"
#include "daemon/telemetry.h"
#include "daemon/worker_figures.h"
#include "worker/comm/exchange.h"
#include "worker/comm/nccl_collective.h"
#include "worker/host/worker_host.h"

namespace longhaul::daemon {
namespace {

constexpr int kThreadsMax = 512;
constexpr absl::Duration kDrainAnswerMax = absl::Seconds(10);
constexpr absl::Duration kDrainRetryEvery = absl::Seconds(2);

LogLevel FromWorker(worker::LogLevel level) {
  switch (level) {
    case worker::LogLevel::kDebug:
      return LogLevel::kDebug;
    case worker::LogLevel::kInfo:
      return LogLevel::kInfo;
    case worker::LogLevel::kWarning:
      return LogLevel::kWarning;
    case worker::LogLevel::kError:
      break;
  }
  return LogLevel::kError;
}

// "NVIDIA H100 at 0000:17:00.0", "cpu, 8 threads".
std::string DeviceText(const worker::NodeFacts& facts) {
  if (!facts.card) return absl::StrCat("cpu, ", facts.threads, " threads");
  return absl::StrCat(facts.device_name, " at ", facts.card->pci_bus_id);
}

// How replicas on this worker's card may sum from card to card.
worker::DeviceRendezvousFactory RendezvousOf(const WorkerConfig& config) {
  if (!config.cuda_device) return nullptr;
  if (config.nccl) return worker::NcclRendezvousFactory();
  return [](const auto&, compute::Backend&, Clock&) {
    return absl::FailedPreconditionError("its configuration says `nccl: false`");
  };
}

// Asks the coordinator for the worker's drain until it agrees or nobody waits any more. The end
// does not wait for an answer.
class DrainAsker {
 public:
  DrainAsker(std::unique_ptr<DrainRequest> request, Clock& clock, const Log& log)
      : request_(std::move(request)), thread_([this, &clock, &log] {
          for (;;) {
            const absl::Status asked = request_->Ask(kDrainAnswerMax);
            if (asked.ok()) {
              log.Info("the coordinator drains this node");
              return;
            }
            std::unique_lock<std::mutex> lock(mutex_);
            if (stopping_) return;
            log.Warning("could not ask for a drain; trying again",
                        {{"reason", std::string(asked.message())}});
            if (clock.WaitUntil(lock, changed_, clock.Now() + kDrainRetryEvery,
                                [this] { return stopping_; })) {
              return;
            }
          }
        }) {}
  ~DrainAsker() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    request_->Cancel();
    thread_.join();
  }

 private:
  const std::unique_ptr<DrainRequest> request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

class WorkerDaemon : public Daemon {
 public:
  WorkerDaemon(const WorkerConfig& config, const std::string& config_path,
               std::unique_ptr<Credentials> credentials, Clock& clock, Log& log)
      : config_(config),
        config_path_(config_path),
        credentials_(std::move(credentials)),
        clock_(clock),
        log_(log),
        router_(clock),
        exchange_(router_, *credentials_, counters_),
        transport_(*credentials_, clock, counters_) {}

  // In the order of who calls whom: nothing is called after its end.
  ~WorkerDaemon() override {
    telemetry_.reset();
    drain_.reset();
    if (membership_ != nullptr) membership_->Stop();
    host_.reset();
    server_.reset();
  }

  absl::Status Start() {
    LH_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(config_.folder));
    lock_ = std::make_unique<FolderLock>(std::move(lock));
    LH_ASSIGN_OR_RETURN(const Identity identity, TakeIdentity(config_.folder, config_.name));
    name_ = identity.name;
    LH_RETURN_IF_ERROR(credentials_->CheckOwnName(name_));
    const HostResources resources = ReadHostResources();
    LH_ASSIGN_OR_RETURN(device_, WorkerDevice::Open(config_, resources, clock_, log_));
    LH_ASSIGN_OR_RETURN(server_, ListeningServer::Listen(config_.data_listen, *credentials_,
                                                         {&exchange_}, kThreadsMax));
    StartHost(HostOptions(identity, resources));
    if (config_.metrics.listen) {
      LH_ASSIGN_OR_RETURN(telemetry_, Telemetry::Serve(*config_.metrics.listen, [this] {
                            return WorkerFigures(
                                {membership_->membership().ok(), host_->busy(),
                                 router_.stale_epochs_refused(), host_->exchange_counters()},
                                counters_);
                          }));
      log_.Info("metrics are served", {{"port", absl::StrCat(telemetry_->port())}});
    }
    return absl::OkStatus();
  }

  std::string Describe() override {
    const absl::Status membership = membership_->membership();
    return absl::StrCat(host_->Describe(),
                        membership.ok() ? "" : "; not part of the cluster: ", membership.message());
  }

  void Reload() override {
    ReloadConfig(config_, config_path_, ParseWorkerConfig, *credentials_, log_);
  }

  void BeginLeaving() override {
    if (!host_->busy()) return;
    log_.Info("asking the coordinator for a drain, so that nothing of the run is lost");
    drain_ = std::make_unique<DrainAsker>(
        std::make_unique<DrainRequest>(ToString(config_.coordinator), config_.coordinator_name,
                                       *credentials_, name_),
        clock_, log_);
  }
  bool MayLeave() override { return !host_->busy(); }
  absl::Duration leave_max() const override { return config_.drain_max; }

  absl::Status Failure() override { return device_->health(); }
  void BeginFailing(const absl::Status& reason) override {
    membership_->Send(worker::Heartbeat{std::nullopt, std::string(reason.message())});
    host_->FailStage(reason);
  }

 private:
  std::string AdvertisedAddress() const {
    Address address = config_.data_advertise.value_or(server_->address());
    if (address.port == 0) address.port = server_->address().port;
    return ToString(address);
  }

  worker::WorkerHostOptions HostOptions(const Identity& identity,
                                        const HostResources& resources) const {
    worker::WorkerHostOptions options;
    options.folder = config_.folder;
    options.peer_silence_max = config_.peer_wait_max;
    options.transfer_max = config_.transfer_max;
    options.connections = config_.connections;
    worker::NodeFacts& facts = options.facts;
    facts.name = identity.name;
    facts.incarnation = identity.incarnation;
    facts.site = config_.site;
    facts.host = resources.host;
    facts.data_address = AdvertisedAddress();
    facts.trusted_network = config_.trusted_network;
    facts.version = OwnProtocol().build;
    facts.host_cores = resources.cores;
    device_->Describe(facts);
    return options;
  }

  void StartHost(worker::WorkerHostOptions options) {
    const worker::NodeFacts& facts = options.facts;
    log_.Info("worker is listening", {{"node", facts.name},
                                      {"site", facts.site},
                                      {"address", facts.data_address},
                                      {"tls", credentials_->tls() ? "on" : "off"},
                                      {"device", DeviceText(facts)},
                                      {"memory", absl::StrCat(facts.memory_bytes >> 20, " MiB")},
                                      {"gflops", absl::StrCat(facts.flops_per_second * 1e-9)},
                                      {"numeric_class", facts.numeric_class}});
    const std::string coordinator = ToString(config_.coordinator);
    remote_ = std::make_unique<StorageClient>(coordinator, config_.coordinator_name, *credentials_,
                                              clock_);
    MembershipClientOptions client;
    client.coordinator = coordinator;
    client.coordinator_name = config_.coordinator_name;
    client.jitter_seed = absl::HashOf(facts.name, facts.incarnation);
    membership_ = std::make_unique<MembershipClient>(client, *credentials_, clock_, log_);
    worker::WorkerHostDependencies dependencies;
    dependencies.clock = &clock_;
    dependencies.control = membership_.get();
    dependencies.remote = remote_.get();
    dependencies.transport = &transport_;
    dependencies.router = &router_;
    dependencies.make_backend = [this] { return device_->MakeBackend(); };
    dependencies.device_rendezvous = RendezvousOf(config_);
    dependencies.on_device_lost = [this](const absl::Status& reason) { device_->Fail(reason); };
    dependencies.log = [this](worker::LogLevel level, const std::string& text) {
      log_.Write(FromWorker(level), text);
    };
    host_ = std::make_unique<worker::WorkerHost>(std::move(options), std::move(dependencies));
    membership_->Start({[this] { return host_->MakeRegister(); },
                        [this](const worker::ToWorker& message) { host_->OnMessage(message); },
                        [this] { return device_->TakeReadings(); }});
  }

  const WorkerConfig config_;
  const std::string config_path_;
  const std::unique_ptr<Credentials> credentials_;
  Clock& clock_;
  Log& log_;
  std::unique_ptr<FolderLock> lock_;
  std::string name_;
  std::unique_ptr<WorkerDevice> device_;
  ExchangeStreamCounters counters_;
  worker::ExchangeRouter router_;
  ExchangeServer exchange_;
  GrpcTransport transport_;
  std::unique_ptr<ListeningServer> server_;
  std::unique_ptr<StorageClient> remote_;
  std::unique_ptr<MembershipClient> membership_;
  std::unique_ptr<worker::WorkerHost> host_;
  std::unique_ptr<DrainAsker> drain_;
  std::unique_ptr<Telemetry> telemetry_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> StartWorker(const WorkerConfig& config,
                                                    const std::string& config_path,
                                                    std::unique_ptr<Credentials> credentials,
                                                    Clock& clock, Log& log) {
  auto daemon =
      std::make_unique<WorkerDaemon>(config, config_path, std::move(credentials), clock, log);
  LH_RETURN_IF_ERROR(daemon->Start());
  return daemon;
}

}  // namespace longhaul::daemon
