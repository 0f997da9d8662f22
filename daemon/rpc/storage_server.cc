#include "daemon/rpc/storage_server.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "daemon/rpc/shard_transfer.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {
namespace {

absl::Status MemoryExhausted() {
  return absl::UnavailableError(
      "the coordinator is holding as many shards in memory as it may; try again");
}

}  // namespace

StorageServer::StorageServer(const Stores& stores, const Credentials& credentials,
                             StorageLimits limits)
    : stores_(stores),
      credentials_(credentials),
      limits_(limits),
      memory_(limits.transfer_bytes_max),
      upload_memory_(limits.upload_bytes_max) {}

absl::Status StorageServer::CheckDataset(const grpc::ServerContext& context,
                                         const std::string& dataset) const {
  LH_RETURN_IF_ERROR(credentials_.CheckCall(context));
  if (IsSha256Hex(dataset)) return absl::OkStatus();
  return absl::InvalidArgumentError("a data set's id is a SHA-256 in 64 hexadecimal digits");
}

grpc::Status StorageServer::FetchIndex(grpc::ServerContext* context,
                                       const v1::FetchIndexRequest* request,
                                       v1::FetchIndexResponse* response) {
  const absl::Status valid = CheckDataset(*context, request->dataset());
  if (!valid.ok()) return ToGrpc(valid);
  const absl::StatusOr<data::DatasetIndex> index = stores_.datasets.Index(request->dataset());
  if (!index.ok()) return ToGrpc(index.status());
  response->set_index_json(index->ToJson());
  return grpc::Status::OK;
}

grpc::Status StorageServer::FetchChunk(grpc::ServerContext* context,
                                       const v1::FetchChunkRequest* request,
                                       v1::FetchChunkResponse* response) {
  const absl::Status valid = CheckDataset(*context, request->dataset());
  if (!valid.ok()) return ToGrpc(valid);
  absl::StatusOr<std::string> chunk =
      stores_.datasets.ReadChunk(request->dataset(), request->chunk());
  if (!chunk.ok()) return ToGrpc(chunk.status());
  response->set_data(*std::move(chunk));
  return grpc::Status::OK;
}

grpc::Status StorageServer::BeginUpload(grpc::ServerContext* context,
                                        const v1::BeginUploadRequest* request,
                                        v1::BeginUploadResponse* response) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  const auto index = data::DatasetIndex::FromJson(request->index_json());
  if (!index.ok()) return ToGrpc(index.status());
  const absl::StatusOr<std::vector<uint64_t>> missing = stores_.uploads.Begin(*index);
  if (!missing.ok()) return ToGrpc(missing.status());
  response->set_dataset(index->Id());
  response->mutable_missing_chunks()->Add(missing->begin(), missing->end());
  return grpc::Status::OK;
}

grpc::Status StorageServer::UploadChunk(grpc::ServerContext* context,
                                        const v1::UploadChunkRequest* request,
                                        v1::UploadChunkResponse* /*response*/) {
  const absl::Status valid = CheckDataset(*context, request->dataset());
  if (!valid.ok()) return ToGrpc(valid);
  return ToGrpc(stores_.uploads.Put(request->dataset(), request->chunk(), request->data()));
}

grpc::Status StorageServer::FinishUpload(grpc::ServerContext* context,
                                         const v1::FinishUploadRequest* request,
                                         v1::FinishUploadResponse* /*response*/) {
  const absl::Status valid = CheckDataset(*context, request->dataset());
  if (!valid.ok()) return ToGrpc(valid);
  return ToGrpc(stores_.uploads.Finish(request->dataset()));
}

grpc::Status StorageServer::FetchShard(grpc::ServerContext* context,
                                       const v1::FetchShardRequest* request,
                                       grpc::ServerWriter<v1::ShardPiece>* writer) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  return ToGrpc(SendShard(request->sha256(), *writer));
}

absl::Status StorageServer::TooLarge(const std::string& sha256, uint64_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat("shard ", sha256, " has ", bytes,
                                                   " bytes, more than the ",
                                                   limits_.shard_bytes_max, " allowed"));
}

absl::Status StorageServer::SendShard(const std::string& sha256,
                                      grpc::ServerWriter<v1::ShardPiece>& writer) {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard is named by a SHA-256 in 64 hexadecimal digits");
  }
  LH_ASSIGN_OR_RETURN(const uint64_t bytes_stored, stores_.shards.ShardBytes(sha256));
  if (bytes_stored > limits_.shard_bytes_max) return TooLarge(sha256, bytes_stored);
  const std::optional<ByteBudget::Share> share = memory_.Take(bytes_stored);
  if (!share) return MemoryExhausted();
  LH_ASSIGN_OR_RETURN(const std::string bytes, stores_.shards.GetShard(sha256));
  uint64_t offset = 0;
  do {
    v1::ShardPiece piece;
    if (offset == 0) {
      piece.set_sha256(sha256);
      piece.set_bytes(bytes.size());
    }
    const uint64_t size = std::min<uint64_t>(kShardPieceBytes, bytes.size() - offset);
    piece.set_data(bytes.data() + offset, size);
    if (!writer.Write(piece)) return absl::CancelledError("the worker ended the transfer");
    offset += size;
  } while (offset < bytes.size());
  return absl::OkStatus();
}

grpc::Status StorageServer::StoreShard(grpc::ServerContext* context,
                                       grpc::ServerReader<v1::ShardPiece>* reader,
                                       v1::StoreShardResponse* /*response*/) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  return ToGrpc(ReceiveShard(*reader));
}

absl::Status StorageServer::ReceiveShard(grpc::ServerReader<v1::ShardPiece>& reader) {
  v1::ShardPiece piece;
  if (!reader.Read(&piece)) return absl::CancelledError("the transfer ended before it began");
  const std::string sha256 = piece.sha256();
  const uint64_t bytes_stated = piece.bytes();
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard is named by a SHA-256 in 64 hexadecimal digits");
  }
  if (bytes_stated > limits_.shard_bytes_max) return TooLarge(sha256, bytes_stated);
  const std::optional<ByteBudget::Share> share = upload_memory_.TakeOrAlone(bytes_stated);
  if (!share) return MemoryExhausted();
  std::string bytes;
  do {
    if (piece.data().size() > bytes_stated - bytes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", sha256, " is longer than the ", bytes_stated, " bytes stated"));
    }
    bytes += piece.data();
  } while (reader.Read(&piece));
  if (bytes.size() != bytes_stated) {
    return absl::DataLossError(absl::StrCat("shard ", sha256, " ended after ", bytes.size(), " of ",
                                            bytes_stated, " bytes"));
  }
  return stores_.checkpoints.StoreShard(sha256, bytes);
}

}  // namespace longhaul::daemon
