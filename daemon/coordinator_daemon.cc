#include "daemon/coordinator_daemon.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "checkpoint/shard_store.h"
#include "coordinator/host/checkpoints.h"
#include "coordinator/host/coordinator_host.h"
#include "coordinator/host/metrics_store.h"
#include "coordinator/host/sqlite_journal.h"
#include "coordinator/plan/planner.h"
#include "daemon/coordinator_figures.h"
#include "daemon/coordinator_state.h"
#include "daemon/folder.h"
#include "daemon/host_resources.h"
#include "daemon/reload_config.h"
#include "daemon/rpc/admin_server.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/membership_server.h"
#include "daemon/rpc/session_table.h"
#include "daemon/rpc/storage_server.h"
#include "daemon/rpc/upload_staging.h"
#include "daemon/telemetry.h"
#include "data/dataset.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kSessionMessagesMax = 65536;
constexpr int kThreadsMax = 2048;
// One event and one write take far less, also where the disk is slow.
constexpr absl::Duration kTurnMax = absl::Minutes(1);

// Uploads take at most half of the memory there is now (known or not, 1 GiB stays the least).
StorageLimits OwnStorageLimits() {
  StorageLimits limits;
  const auto half = static_cast<uint64_t>(ReadHostResources().memory_bytes) / 2;
  limits.upload_bytes_max = std::max(limits.upload_bytes_max, half);
  return limits;
}

class CoordinatorDaemon : public Daemon {
 public:
  CoordinatorDaemon(const CoordinatorConfig& config, const std::string& config_path,
                    std::unique_ptr<Credentials> credentials, Clock& clock, Log& log)
      : config_(config),
        config_path_(config_path),
        credentials_(std::move(credentials)),
        clock_(clock),
        log_(log),
        datasets_(absl::StrCat(config.folder, "/datasets")),
        uploads_(absl::StrCat(config.folder, "/uploads"), datasets_, clock),
        shards_(absl::StrCat(config.folder, "/checkpoints")),
        sessions_(clock, kSessionMessagesMax) {}

  ~CoordinatorDaemon() override {
    telemetry_.reset();
    // That our own end closes the streams, and that no heartbeat comes while they close, is nothing
    // that the core should hear of: it would take the nodes for lost.
    if (host_ != nullptr) host_->Stop();
    server_.reset();
    host_.reset();
  }

  absl::Status Start() {
    LH_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(config_.folder));
    lock_ = std::make_unique<FolderLock>(std::move(lock));
    LH_RETURN_IF_ERROR(uploads_.Clear());
    // Reads which shards are there: before the lock another process might still add some.
    checkpoints_ = std::make_unique<coordinator::StoredCheckpoints>(
        shards_, clock_, [this](bool warning, const std::string& text) { Say(warning, text); });
    LH_RETURN_IF_ERROR(StartHost());
    LH_RETURN_IF_ERROR(StartServer());
    if (config_.metrics.listen) {
      LH_ASSIGN_OR_RETURN(telemetry_, Telemetry::Serve(*config_.metrics.listen, [this] {
                            return CoordinatorFigures(*host_, *membership_, sessions_);
                          }));
      log_.Info("metrics are served", {{"port", absl::StrCat(telemetry_->port())}});
    }
    log_.Info("coordinator is listening", {{"address", ToString(server_->address())},
                                           {"tls", credentials_->tls() ? "on" : "off"},
                                           {"folder", config_.folder}});
    return absl::OkStatus();
  }

  std::string Describe() override {
    const coordinator::CoordinatorHost::Pulse pulse = host_->pulse();
    const absl::Status health = host_->health();
    return absl::StrCat("listening on ", ToString(server_->address()), "; ", pulse.nodes_connected,
                        " nodes connected, ", pulse.runs_running, " runs running",
                        IsTurning() ? "" : "; its loop hangs, perhaps for its disk",
                        health.ok() ? "" : "; ", health.message());
  }

  bool IsTurning() override { return clock_.Now() - host_->pulse().turned_at < kTurnMax; }

  void Reload() override {
    ReloadConfig(config_, config_path_, ParseCoordinatorConfig, *credentials_, log_);
  }

  // A coordinator that leaves does not stop training: workers go on and attach again.
  void BeginLeaving() override {}
  bool MayLeave() override { return true; }
  absl::Duration leave_max() const override { return absl::ZeroDuration(); }

 private:
  void Say(bool warning, const std::string& text) {
    log_.Write(warning ? LogLevel::kWarning : LogLevel::kInfo, text);
  }

  coordinator::CoordinatorHostOptions HostOptions(const CoordinatorSelf& self) const {
    coordinator::CoordinatorHostOptions options;
    options.core.lease = config_.lease;
    options.core.prepare_max = config_.prepare_max;
    options.core.ending_max = config_.ending_max;
    options.core.checkpoints_kept = config_.checkpoints_kept;
    options.core.term = self.term;
    options.core.token_secret = self.token_secret;
    for (const LinkConfig& link : config_.links) {
      options.core.links.push_back({link.from, link.to, link.latency_milliseconds * 1e-3,
                                    link.megabits_per_second * 1e6 / 8});
    }
    options.heartbeat_every = config_.lease / 5;
    return options;
  }

  absl::Status StartHost() {
    const std::string journal_path = absl::StrCat(config_.folder, "/journal.db");
    LH_ASSIGN_OR_RETURN(const CoordinatorSelf self,
                        TakeCoordinatorSelf(config_.folder, journal_path));
    LH_ASSIGN_OR_RETURN(journal_, coordinator::OpenSqliteJournal(journal_path));
    LH_ASSIGN_OR_RETURN(
        metrics_, coordinator::OpenSqliteMetrics(absl::StrCat(config_.folder, "/metrics.db")));
    coordinator::CoordinatorHostDependencies dependencies;
    dependencies.clock = &clock_;
    dependencies.sink = &sessions_;
    dependencies.journal = journal_.get();
    dependencies.metrics = metrics_.get();
    dependencies.checkpoints = checkpoints_.get();
    dependencies.planner = coordinator::MakePlan;
    dependencies.log = [this](bool warning, const std::string& text) { Say(warning, text); };
    LH_ASSIGN_OR_RETURN(host_,
                        coordinator::CoordinatorHost::Create(HostOptions(self), dependencies));
    return SayWhichRunsAreLost();
  }

  // A journal that was lost, or is an old copy, leaves checkpoints that no run knows of.
  absl::Status SayWhichRunsAreLost() {
    LH_ASSIGN_OR_RETURN(std::vector<std::string> runs, shards_.Runs());
    const coordinator::State state = host_->Snapshot();
    std::erase_if(runs, [&](const std::string& run) { return state.runs.contains(run); });
    if (runs.empty()) return absl::OkStatus();
    log_.Warning(
        "the journal does not know runs whose checkpoints are here: restore journal.db and "
        "journal.db-wal from a copy, or move the folder away; a new run of such a name "
        "replaces them",
        {{"runs", absl::StrJoin(runs, " ")}, {"folder", config_.folder}});
    return absl::OkStatus();
  }

  absl::Status StartServer() {
    EventSink sink = {[this] { return host_->NewSession(); },
                      [this](coordinator::Event event) { return host_->Post(std::move(event)); }};
    membership_ = std::make_unique<MembershipServer>(MembershipServerOptions(), std::move(sink),
                                                     sessions_, *credentials_, clock_, log_);
    storage_ = std::make_unique<StorageServer>(
        StorageServer::Stores{datasets_, uploads_, shards_, *checkpoints_}, *credentials_, clock_,
        OwnStorageLimits());
    admin_ = std::make_unique<AdminServer>(
        AdminServerOptions(),
        AdminServer::Parts{*host_, datasets_, shards_, *credentials_, clock_});
    LH_ASSIGN_OR_RETURN(
        server_,
        ListeningServer::Listen(config_.listen, *credentials_,
                                {membership_.get(), storage_.get(), admin_.get()}, kThreadsMax));
    return absl::OkStatus();
  }

  const CoordinatorConfig config_;
  const std::string config_path_;
  const std::unique_ptr<Credentials> credentials_;
  Clock& clock_;
  Log& log_;
  std::unique_ptr<FolderLock> lock_;
  data::DatasetStore datasets_;
  UploadStaging uploads_;
  checkpoint::ShardStore shards_;
  std::unique_ptr<coordinator::StoredCheckpoints> checkpoints_;
  SessionTable sessions_;
  std::unique_ptr<coordinator::Journal> journal_;
  std::unique_ptr<coordinator::MetricsStore> metrics_;
  std::unique_ptr<coordinator::CoordinatorHost> host_;
  std::unique_ptr<MembershipServer> membership_;
  std::unique_ptr<StorageServer> storage_;
  std::unique_ptr<AdminServer> admin_;
  std::unique_ptr<ListeningServer> server_;
  std::unique_ptr<Telemetry> telemetry_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> StartCoordinator(const CoordinatorConfig& config,
                                                         const std::string& config_path,
                                                         std::unique_ptr<Credentials> credentials,
                                                         Clock& clock, Log& log) {
  auto daemon =
      std::make_unique<CoordinatorDaemon>(config, config_path, std::move(credentials), clock, log);
  LH_RETURN_IF_ERROR(daemon->Start());
  return daemon;
}

}  // namespace longhaul::daemon
