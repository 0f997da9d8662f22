#include "daemon/rpc/storage_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/shard_transfer.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {

// One call: signed, with a deadline, cancelled when the client is.
class StorageClient::Call {
 public:
  Call(StorageClient& client, std::string what, absl::Time deadline)
      : client_(client), what_(std::move(what)) {
    client.credentials_.Sign(context_);
    EndAfter(context_, deadline - client.clock_.Now());
    std::lock_guard<std::mutex> lock(client_.mutex_);
    client_.in_flight_.insert(&context_);
    if (client_.cancelled_) context_.TryCancel();
  }
  ~Call() {
    std::lock_guard<std::mutex> lock(client_.mutex_);
    client_.in_flight_.erase(&context_);
  }

  grpc::ClientContext& context() { return context_; }
  absl::Status End(const grpc::Status& status) const {
    return FromGrpc(status, absl::StrCat(what_, " at coordinator ", client_.coordinator_));
  }

 private:
  StorageClient& client_;
  const std::string what_;
  grpc::ClientContext context_;
};

StorageClient::StorageClient(const std::string& coordinator, const std::string& coordinator_name,
                             const Credentials& credentials, Clock& clock)
    : StorageClient(coordinator, credentials, clock,
                    v1::Storage::NewStub(OpenChannel(coordinator, coordinator_name, credentials))) {
}

StorageClient::StorageClient(const std::string& coordinator, const Credentials& credentials,
                             Clock& clock, std::shared_ptr<v1::Storage::Stub> stub)
    : coordinator_(coordinator), credentials_(credentials), clock_(clock), stub_(std::move(stub)) {}

absl::StatusOr<data::DatasetIndex> StorageClient::FetchIndex(const std::string& dataset,
                                                             absl::Time deadline) {
  Call call(*this, absl::StrCat("index of data set ", dataset), deadline);
  v1::FetchIndexRequest request;
  request.set_dataset(dataset);
  v1::FetchIndexResponse response;
  LH_RETURN_IF_ERROR(call.End(stub_->FetchIndex(&call.context(), request, &response)));
  return data::DatasetIndex::FromJson(response.index_json());
}

absl::StatusOr<std::string> StorageClient::FetchChunk(const std::string& dataset, uint64_t chunk,
                                                      absl::Time deadline) {
  Call call(*this, absl::StrCat("chunk ", chunk, " of data set ", dataset), deadline);
  v1::FetchChunkRequest request;
  request.set_dataset(dataset);
  request.set_chunk(chunk);
  v1::FetchChunkResponse response;
  LH_RETURN_IF_ERROR(call.End(stub_->FetchChunk(&call.context(), request, &response)));
  return std::move(*response.mutable_data());
}

absl::StatusOr<std::string> StorageClient::FetchShard(const std::string& sha256, uint64_t bytes_max,
                                                      absl::Time deadline) {
  Call call(*this, absl::StrCat("shard ", sha256), deadline);
  ShardBytes shard = ReadShard(*stub_, call.context(), sha256, bytes_max, [] {});
  LH_RETURN_IF_ERROR(call.End(shard.status));
  return std::move(shard.bytes);
}

absl::Status StorageClient::StoreShard(const std::string& sha256, absl::string_view bytes,
                                       absl::Time deadline) {
  Call call(*this, absl::StrCat("shard ", sha256), deadline);
  return call.End(WriteShard(*stub_, call.context(), sha256, bytes, [] {}));
}

void StorageClient::Cancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : in_flight_) context->TryCancel();
}

std::unique_ptr<worker::RemoteStore> StorageClient::MakeView() {
  return std::unique_ptr<StorageClient>(
      new StorageClient(coordinator_, credentials_, clock_, stub_));
}

}  // namespace longhaul::daemon
