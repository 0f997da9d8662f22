// Fetching and storing a shard piece by piece, for workers and for the command line.
#ifndef LONGHAUL_DAEMON_RPC_SHARD_TRANSFER_H_
#define LONGHAUL_DAEMON_RPC_SHARD_TRANSFER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "longhaul/v1/storage.grpc.pb.h"

namespace longhaul::daemon {

// Bytes of a shard in one message.
inline constexpr uint64_t kShardPieceBytes = 1 << 20;

// What came of a call. The bytes are whole only if `status` is good, and not yet checked against
// the hash.
struct ShardBytes {
  std::string bytes;
  grpc::Status status;  // DATA_LOSS if the peer sent more than it may
};

// Makes the call FetchShard and reads it to its end; at most `bytes_max` bytes are kept, and the
// call is cancelled at the first byte beyond. `call` is signed, and its owner ends it when it takes
// too long; `moved` is called for every piece.
ShardBytes ReadShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                     const std::string& sha256, uint64_t bytes_max,
                     absl::FunctionRef<void()> moved);

// Makes the call StoreShard; otherwise as ReadShard.
grpc::Status WriteShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                        const std::string& sha256, absl::string_view bytes,
                        absl::FunctionRef<void()> moved);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_SHARD_TRANSFER_H_
