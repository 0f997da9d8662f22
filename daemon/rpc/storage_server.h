// Data sets and checkpoint shards, served by the coordinator.
#ifndef LONGHAUL_DAEMON_RPC_STORAGE_SERVER_H_
#define LONGHAUL_DAEMON_RPC_STORAGE_SERVER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "checkpoint/shard_store.h"
#include "coordinator/host/checkpoints.h"
#include "daemon/rpc/byte_budget.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/silence_watch.h"
#include "daemon/rpc/upload_staging.h"
#include "data/dataset.h"
#include "longhaul/v1/storage.grpc.pb.h"

namespace longhaul::daemon {

struct StorageLimits {
  uint64_t shard_bytes_max = uint64_t{16} << 30;  // of one shard
  uint64_t upload_bytes_max = uint64_t{1} << 30;  // of uploads at one time; one may be alone
  absl::Duration silence_max = absl::Minutes(2);  // of a peer within the transfer of a shard
};

// Every size that a peer states is checked against the limits before memory is held for it, and
// memory grows only with bytes that have arrived. Unavailable while other uploads hold all the
// memory there is for them: workers try again. What is fetched is sent from the files, a piece at a
// time. A transfer that stands still is cancelled.
class StorageServer final : public v1::Storage::Service {
 public:
  // All references, and the clock, must outlive the server.
  struct Stores {
    data::DatasetStore& datasets;
    UploadStaging& uploads;
    checkpoint::ShardStore& shards;
    coordinator::Checkpoints& checkpoints;
  };
  StorageServer(const Stores& stores, const Credentials& credentials, Clock& clock,
                StorageLimits limits = {});

  grpc::Status FetchIndex(grpc::ServerContext* context, const v1::FetchIndexRequest* request,
                          v1::FetchIndexResponse* response) override;
  grpc::Status FetchChunk(grpc::ServerContext* context, const v1::FetchChunkRequest* request,
                          v1::FetchChunkResponse* response) override;
  grpc::Status BeginUpload(grpc::ServerContext* context, const v1::BeginUploadRequest* request,
                           v1::BeginUploadResponse* response) override;
  grpc::Status UploadChunk(grpc::ServerContext* context, const v1::UploadChunkRequest* request,
                           v1::UploadChunkResponse* response) override;
  grpc::Status FinishUpload(grpc::ServerContext* context, const v1::FinishUploadRequest* request,
                            v1::FinishUploadResponse* response) override;
  grpc::Status FetchShard(grpc::ServerContext* context, const v1::FetchShardRequest* request,
                          grpc::ServerWriter<v1::ShardPiece>* writer) override;
  grpc::Status StoreShard(grpc::ServerContext* context, grpc::ServerReader<v1::ShardPiece>* reader,
                          v1::StoreShardResponse* response) override;

 private:
  absl::Status CheckDataset(const grpc::ServerContext& context, const std::string& dataset) const;
  absl::Status TooLarge(const std::string& sha256, uint64_t bytes) const;
  absl::Status SendShard(const std::string& sha256, SilenceWatch& watch,
                         grpc::ServerWriter<v1::ShardPiece>& writer) const;
  struct Upload;
  absl::StatusOr<Upload> ReceiveShard(SilenceWatch& watch,
                                      grpc::ServerReader<v1::ShardPiece>& reader);
  // Makes and waits for a transfer of `context` that the watch looks after.
  template <typename Transfer>
  auto Watched(grpc::ServerContext& context, Transfer transfer) const
      -> decltype(transfer(std::declval<SilenceWatch&>()));

  const Stores stores_;
  const Credentials& credentials_;
  Clock& clock_;
  const StorageLimits limits_;
  ByteBudget upload_memory_;
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_STORAGE_SERVER_H_
