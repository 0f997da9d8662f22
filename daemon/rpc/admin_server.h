// What the command line asks of the coordinator.
#ifndef LONGHAUL_DAEMON_RPC_ADMIN_SERVER_H_
#define LONGHAUL_DAEMON_RPC_ADMIN_SERVER_H_

#include <condition_variable>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "checkpoint/shard_store.h"
#include "coordinator/host/coordinator_host.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/run_check.h"
#include "data/dataset.h"
#include "longhaul/v1/admin.grpc.pb.h"

namespace longhaul::daemon {

struct AdminServerOptions {
  absl::Duration watch_poll = absl::Seconds(1);  // to notice that a watcher has left
  int watch_steps_max = 512;                     // read from the store at one time
};

class AdminServer final : public v1::Admin::Service {
 public:
  // All references must outlive the server.
  struct Parts {
    coordinator::CoordinatorHost& host;
    data::DatasetStore& datasets;
    checkpoint::ShardStore& shards;
    const Credentials& credentials;
    Clock& clock;
  };
  AdminServer(AdminServerOptions options, const Parts& parts)
      : options_(options), parts_(parts), data_check_(parts.datasets) {}

  grpc::Status StartRun(grpc::ServerContext* context, const v1::StartRunRequest* request,
                        v1::StartRunResponse* response) override;
  grpc::Status StopRun(grpc::ServerContext* context, const v1::StopRunRequest* request,
                       v1::StopRunResponse* response) override;
  grpc::Status ResumeRun(grpc::ServerContext* context, const v1::ResumeRunRequest* request,
                         v1::ResumeRunResponse* response) override;
  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* response) override;
  grpc::Status ShowRun(grpc::ServerContext* context, const v1::ShowRunRequest* request,
                       v1::ShowRunResponse* response) override;
  grpc::Status WatchRun(grpc::ServerContext* context, const v1::WatchRunRequest* request,
                        grpc::ServerWriter<v1::WatchRunResponse>* writer) override;
  grpc::Status ListNodes(grpc::ServerContext* context, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override;
  grpc::Status ShowNode(grpc::ServerContext* context, const v1::ShowNodeRequest* request,
                        v1::ShowNodeResponse* response) override;
  grpc::Status DrainNode(grpc::ServerContext* context, const v1::DrainNodeRequest* request,
                         v1::DrainNodeResponse* response) override;
  grpc::Status ListCheckpoints(grpc::ServerContext* context,
                               const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override;
  grpc::Status Version(grpc::ServerContext* context, const v1::VersionRequest* request,
                       v1::VersionResponse* response) override;

 private:
  using WatchWriter = grpc::ServerWriter<v1::WatchRunResponse>;

  // The call is one of ours and names a run or node properly.
  absl::Status Check(const grpc::ServerContext& context, absl::string_view what,
                     const std::string& name) const;
  // The core's answer. Cancelled, and nothing was asked, if who asks has left.
  absl::StatusOr<std::string> Ask(const grpc::ServerContext& context,
                                  coordinator::CoordinatorHost::PersonEvent event);
  absl::StatusOr<std::string> Start(const grpc::ServerContext& context,
                                    const v1::StartRunRequest& request);
  // Of a run whose weights are given: commits their checkpoint, then asks the core; what the core
  // refuses leaves no checkpoint. Aborted, and nothing was done, if others start such runs for too
  // long.
  absl::StatusOr<std::string> StartFrom(const grpc::ServerContext& context,
                                        const std::string& checkpoint_json, run::RunSpec spec);
  absl::StatusOr<std::string> CommitAndStart(const grpc::ServerContext& context,
                                             checkpoint::Manifest manifest, run::RunSpec spec,
                                             absl::Time deadline);
  absl::StatusOr<v1::RunSummary> FindRun(const std::string& run, bool whole);
  // Until the run is over or the watcher has left.
  absl::Status Watch(const grpc::ServerContext& context, const v1::WatchRunRequest& request,
                     WatchWriter& writer);
  // Writes all completed steps after `after`, which moves on. False when the watcher has left.
  absl::StatusOr<bool> WriteSteps(const std::string& run, int64_t& after, WatchWriter& writer);

  const AdminServerOptions options_;
  const Parts parts_;
  RunDataCheck data_check_;
  std::mutex mutex_;
  std::condition_variable started_;
  // While a run with given weights starts, no other does, so that names do not meet. Guarded by
  // mutex_.
  bool is_starting_ = false;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_ADMIN_SERVER_H_
