#include "daemon/rpc/drain_request.h"

#include "absl/strings/str_cat.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"
#include "longhaul/v1/admin.grpc.pb.h"

namespace longhaul::daemon {

absl::Status RequestDrain(const std::string& coordinator, const std::string& coordinator_name,
                          const Credentials& credentials, const std::string& node,
                          absl::Duration wait_max) {
  const auto stub = v1::Admin::NewStub(OpenChannel(coordinator, coordinator_name, credentials));
  grpc::ClientContext context;
  credentials.Sign(context);
  EndAfter(context, wait_max);
  v1::DrainNodeRequest request;
  request.set_node(node);
  v1::DrainNodeResponse response;
  return FromGrpc(stub->DrainNode(&context, request, &response),
                  absl::StrCat("drain of node ", node, " at coordinator ", coordinator));
}

}  // namespace longhaul::daemon
