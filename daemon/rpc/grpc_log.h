// What gRPC itself has to say.
#ifndef LONGHAUL_DAEMON_RPC_GRPC_LOG_H_
#define LONGHAUL_DAEMON_RPC_GRPC_LOG_H_

namespace longhaul::daemon {

// Keeps gRPC's own lines off stderr, where they would break our log's and messages' form: what goes
// wrong reaches us as a status. Not where GRPC_VERBOSITY is set: then somebody wants to see them.
// For main(), before anything of gRPC is used.
void SilenceGrpc();

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_GRPC_LOG_H_
