#include "daemon/rpc/storage_server.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/shard_transfer.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {
namespace {

static_assert(data::kIndexBytesMax + 1024 <= kMessageBytesMax,
              "the index of every data set must fit into one message");

absl::Status MemoryExhausted() {
  return absl::UnavailableError(
      "the coordinator is holding as many shards in memory as it may; try again");
}

}  // namespace

// The bytes of a shard, all of them, and the memory that they may be in.
struct StorageServer::Upload {
  std::string sha256;
  std::string bytes;
  ByteBudget::Share share;
};

StorageServer::StorageServer(const Stores& stores, const Credentials& credentials, Clock& clock,
                             StorageLimits limits)
    : stores_(stores),
      credentials_(credentials),
      clock_(clock),
      limits_(limits),
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

template <typename Transfer>
auto StorageServer::Watched(grpc::ServerContext& context, Transfer transfer) const
    -> decltype(transfer(std::declval<SilenceWatch&>())) {
  SilenceWatch watch([&context] { context.TryCancel(); }, limits_.silence_max, clock_);
  auto result = transfer(watch);
  if (!watch.cancelled()) return result;
  return absl::DeadlineExceededError(
      absl::StrCat("the transfer stood still for ", absl::FormatDuration(limits_.silence_max)));
}

grpc::Status StorageServer::FetchShard(grpc::ServerContext* context,
                                       const v1::FetchShardRequest* request,
                                       grpc::ServerWriter<v1::ShardPiece>* writer) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  return ToGrpc(Watched(
      *context, [&](SilenceWatch& watch) { return SendShard(request->sha256(), watch, *writer); }));
}

absl::Status StorageServer::TooLarge(const std::string& sha256, uint64_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat("shard ", sha256, " has ", bytes,
                                                   " bytes, more than the ",
                                                   limits_.shard_bytes_max, " allowed"));
}

absl::Status StorageServer::SendShard(const std::string& sha256, SilenceWatch& watch,
                                      grpc::ServerWriter<v1::ShardPiece>& writer) const {
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard is named by a SHA-256 in 64 hexadecimal digits");
  }
  LH_ASSIGN_OR_RETURN(const uint64_t bytes, stores_.shards.ShardBytes(sha256));
  if (bytes > limits_.shard_bytes_max) return TooLarge(sha256, bytes);
  v1::ShardPiece piece;
  piece.set_sha256(sha256);
  piece.set_bytes(bytes);
  const auto send = [&](absl::string_view data) -> absl::Status {
    piece.set_data(data.data(), data.size());
    if (!writer.Write(piece)) return absl::CancelledError("the peer ended the transfer");
    watch.Moved();
    piece.Clear();
    return absl::OkStatus();
  };
  if (bytes == 0) LH_RETURN_IF_ERROR(send(""));
  return stores_.shards.ReadShard(sha256, kShardPieceBytes, send);
}

grpc::Status StorageServer::StoreShard(grpc::ServerContext* context,
                                       grpc::ServerReader<v1::ShardPiece>* reader,
                                       v1::StoreShardResponse* /*response*/) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  const absl::StatusOr<Upload> upload =
      Watched(*context, [&](SilenceWatch& watch) { return ReceiveShard(watch, *reader); });
  if (!upload.ok()) return ToGrpc(upload.status());
  return ToGrpc(stores_.checkpoints.StoreShard(upload->sha256, upload->bytes));
}

absl::StatusOr<StorageServer::Upload> StorageServer::ReceiveShard(
    SilenceWatch& watch, grpc::ServerReader<v1::ShardPiece>& reader) {
  v1::ShardPiece piece;
  if (!reader.Read(&piece)) return absl::CancelledError("the transfer ended before it began");
  const std::string sha256 = piece.sha256();
  const uint64_t bytes_stated = piece.bytes();
  if (!IsSha256Hex(sha256)) {
    return absl::InvalidArgumentError("a shard is named by a SHA-256 in 64 hexadecimal digits");
  }
  if (bytes_stated > limits_.shard_bytes_max) return TooLarge(sha256, bytes_stated);
  std::optional<ByteBudget::Share> share = upload_memory_.TakeOrAlone(bytes_stated);
  if (!share) return MemoryExhausted();
  std::string bytes;
  do {
    if (piece.data().size() > bytes_stated - bytes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", sha256, " is longer than the ", bytes_stated, " bytes stated"));
    }
    bytes += piece.data();
    watch.Moved();
  } while (reader.Read(&piece));
  if (bytes.size() != bytes_stated) {
    return absl::DataLossError(absl::StrCat("shard ", sha256, " ended after ", bytes.size(), " of ",
                                            bytes_stated, " bytes"));
  }
  return Upload{sha256, std::move(bytes), *std::move(share)};
}

}  // namespace longhaul::daemon
