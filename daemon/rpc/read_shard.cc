#include "daemon/rpc/read_shard.h"

#include "absl/strings/str_cat.h"

namespace longhaul::daemon {

ShardBytes ReadShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                     const std::string& sha256, uint64_t bytes_max) {
  v1::FetchShardRequest request;
  request.set_sha256(sha256);
  const auto reader = storage.FetchShard(&call, request);
  ShardBytes shard;
  v1::ShardPiece piece;
  while (reader->Read(&piece)) {
    if (piece.data().size() > bytes_max - shard.bytes.size()) {
      call.TryCancel();
      reader->Finish();
      shard.status = grpc::Status(
          grpc::StatusCode::DATA_LOSS,
          absl::StrCat("more than the ", bytes_max, " bytes of shard ", sha256, " came"));
      return shard;
    }
    shard.bytes += piece.data();
  }
  shard.status = reader->Finish();
  return shard;
}

}  // namespace longhaul::daemon
