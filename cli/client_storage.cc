// The parts of Client that move shards and small data sets.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "cli/client.h"
#include "daemon/rpc/shard_transfer.h"
#include "daemon/rpc/silence_watch.h"

namespace longhaul::cli {
namespace {

// The coordinator hashes and writes a whole shard after its last byte.
constexpr absl::Duration kSilenceMax = absl::Minutes(5);
constexpr absl::Duration kChunkMax = absl::Seconds(30);

}  // namespace

// Of a call that may take as long as its bytes take, but not stand still.
class Client::Transfer {
 public:
  Transfer(Client& client, std::string what)
      : client_(client),
        what_(std::move(what)),
        watch_([this] { call_.TryCancel(); }, kSilenceMax, RealClock()) {
    client.credentials_->Sign(call_);
  }

  grpc::ClientContext& call() { return call_; }
  void Moved() { watch_.Moved(); }
  absl::Status End(const grpc::Status& status) {
    if (status.ok() || !watch_.cancelled()) return client_.Convert(status);
    return absl::DeadlineExceededError(absl::StrCat("the transfer of ", what_, " stood still for ",
                                                    absl::FormatDuration(kSilenceMax),
                                                    "; the coordinator's log may say why"));
  }

 private:
  Client& client_;
  const std::string what_;
  grpc::ClientContext call_;
  daemon::SilenceWatch watch_;
};

absl::Status Client::StoreShard(const checkpoint::EncodedShard& shard) {
  Transfer transfer(*this, absl::StrCat("shard ", shard.shard.sha256));
  return transfer.End(daemon::WriteShard(*storage_, transfer.call(), shard.shard.sha256,
                                         shard.bytes, [&transfer] { transfer.Moved(); }));
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
  Transfer transfer(*this, absl::StrCat("shard ", sha256));
  daemon::ShardBytes shard = daemon::ReadShard(*storage_, transfer.call(), sha256, bytes_max,
                                               [&transfer] { transfer.Moved(); });
  LH_RETURN_IF_ERROR(transfer.End(shard.status));
  return std::move(shard.bytes);
}

}  // namespace longhaul::cli
