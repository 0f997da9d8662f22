#include "daemon/rpc/shard_transfer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longhaul::daemon {

ShardBytes ReadShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                     const std::string& sha256, uint64_t bytes_max,
                     absl::FunctionRef<void()> moved) {
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
    moved();
  }
  shard.status = reader->Finish();
  return shard;
}

grpc::Status WriteShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                        const std::string& sha256, absl::string_view bytes,
                        absl::FunctionRef<void()> moved) {
  v1::StoreShardResponse response;
  const auto writer = storage.StoreShard(&call, &response);
  size_t offset = 0;
  do {
    v1::ShardPiece piece;
    if (offset == 0) {
      piece.set_sha256(sha256);
      piece.set_bytes(bytes.size());
    }
    const size_t size = std::min<size_t>(kShardPieceBytes, bytes.size() - offset);
    piece.set_data(bytes.data() + offset, size);
    if (!writer->Write(piece)) break;  // Finish says why
    offset += size;
    moved();
  } while (offset < bytes.size());
  writer->WritesDone();
  return writer->Finish();
}

}  // namespace longhaul::daemon
