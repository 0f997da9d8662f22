// The coordinator's bulk data as a worker reaches it.
#ifndef LONGHAUL_DAEMON_RPC_STORAGE_CLIENT_H_
#define LONGHAUL_DAEMON_RPC_STORAGE_CLIENT_H_

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/clock.h"
#include "daemon/rpc/credentials.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "longhaul/v1/storage.grpc.pb.h"
#include "worker/host/remote.h"

namespace longhaul::daemon {

class StorageClient : public worker::RemoteStore {
 public:
  // `coordinator` is host:port; `coordinator_name` is in its certificate, with TLS. References must
  // outlive the client.
  StorageClient(const std::string& coordinator, const std::string& coordinator_name,
                const Credentials& credentials, Clock& clock);

  absl::StatusOr<data::DatasetIndex> FetchIndex(const std::string& dataset,
                                                absl::Time deadline) override;
  absl::StatusOr<std::string> FetchChunk(const std::string& dataset, uint64_t chunk,
                                         absl::Time deadline) override;
  absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t bytes_max,
                                         absl::Time deadline) override;
  absl::Status StoreShard(const std::string& sha256, absl::string_view bytes,
                          absl::Time deadline) override;
  void Cancel() override;
  std::unique_ptr<worker::RemoteStore> MakeView() override;

 private:
  class Call;

  StorageClient(const std::string& coordinator, const Credentials& credentials, Clock& clock,
                std::shared_ptr<v1::Storage::Stub> stub);

  const std::string coordinator_;
  const Credentials& credentials_;
  Clock& clock_;
  const std::shared_ptr<v1::Storage::Stub> stub_;  // thread-safe; shared with the views
  std::mutex mutex_;
  bool cancelled_ = false;                    // guarded by mutex_
  std::set<grpc::ClientContext*> in_flight_;  // guarded by mutex_
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_STORAGE_CLIENT_H_
