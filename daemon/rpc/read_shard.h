// Fetching a shard piece by piece, for workers and for the command line.
#ifndef LONGHAUL_DAEMON_RPC_READ_SHARD_H_
#define LONGHAUL_DAEMON_RPC_READ_SHARD_H_

#include <cstdint>
#include <string>

#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "longhaul/v1/storage.grpc.pb.h"

namespace longhaul::daemon {

// What came of a call. The bytes are whole only if `status` is good, and not yet checked against
// the hash.
struct ShardBytes {
  std::string bytes;
  grpc::Status status;  // DATA_LOSS if the peer sent more than it may
};

// Makes the call FetchShard and reads it to its end; at most `bytes_max` bytes are kept, and the
// call is cancelled at the first byte beyond. `call` is signed and has its deadline.
ShardBytes ReadShard(v1::Storage::StubInterface& storage, grpc::ClientContext& call,
                     const std::string& sha256, uint64_t bytes_max);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_READ_SHARD_H_
