// The parts of Client that move shards and small data sets.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "cli/client.h"
#include "daemon/rpc/read_shard.h"

namespace longhaul::cli {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr absl::Duration kShardMax = absl::Minutes(10);
constexpr absl::Duration kChunkMax = absl::Seconds(30);

}  // namespace

absl::Status Client::StoreShard(const checkpoint::EncodedShard& shard) {
  grpc::ClientContext call;
  Prepare(call, kShardMax);
  v1::StoreShardResponse response;
  const auto writer = storage_->StoreShard(&call, &response);
  size_t offset = 0;
  do {
    v1::ShardPiece piece;
    if (offset == 0) {
      piece.set_sha256(shard.shard.sha256);
      piece.set_bytes(shard.bytes.size());
    }
    const size_t size = std::min(kPieceBytes, shard.bytes.size() - offset);
    piece.set_data(shard.bytes.data() + offset, size);
    if (!writer->Write(piece)) break;  // Finish says why
    offset += size;
  } while (offset < shard.bytes.size());
  writer->WritesDone();
  return Convert(writer->Finish());
}

absl::StatusOr<std::string> Client::FetchDataset(const std::string& id, uint64_t bytes_max) {
  v1::FetchIndexRequest request;
  request.set_dataset(id);
  v1::FetchIndexResponse answer;
  {
    grpc::ClientContext call;
    Prepare(call, kChunkMax);
    LH_RETURN_IF_ERROR(Convert(storage_->FetchIndex(&call, request, &answer)));
  }
  LH_ASSIGN_OR_RETURN(const auto index, data::DatasetIndex::FromJson(answer.index_json()));
  if (index.Id() != id) return absl::DataLossError(absl::StrCat("data set ", id, " is another"));
  if (index.bytes > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("data set ", id, " has ", index.bytes, " bytes, more than ", bytes_max));
  }
  std::string bytes;
  for (size_t chunk = 0; chunk < index.chunk_sha256.size(); ++chunk) {
    v1::FetchChunkRequest part;
    part.set_dataset(id);
    part.set_chunk(chunk);
    v1::FetchChunkResponse piece;
    grpc::ClientContext call;
    Prepare(call, kChunkMax);
    LH_RETURN_IF_ERROR(Convert(storage_->FetchChunk(&call, part, &piece)));
    if (Sha256Hex(piece.data()) != index.chunk_sha256[chunk]) {
      return absl::DataLossError(absl::StrCat("chunk ", chunk, " of data set ", id, " is damaged"));
    }
    bytes += piece.data();
  }
  return bytes;
}

absl::StatusOr<std::string> Client::FetchShard(const std::string& sha256, uint64_t bytes_max) {
  grpc::ClientContext call;
  Prepare(call, kShardMax);
  daemon::ShardBytes shard = daemon::ReadShard(*storage_, call, sha256, bytes_max);
  LH_RETURN_IF_ERROR(Convert(shard.status));
  return std::move(shard.bytes);
}

}  // namespace longhaul::cli
