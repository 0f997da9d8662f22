#include "daemon/rpc/drain_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"
#include "longhaul/v1/admin.grpc.pb.h"

namespace longhaul::daemon {

DrainRequest::DrainRequest(std::string coordinator, std::string coordinator_name,
                           const Credentials& credentials, std::string node)
    : coordinator_(std::move(coordinator)),
      coordinator_name_(std::move(coordinator_name)),
      credentials_(credentials),
      node_(std::move(node)) {}

absl::Status DrainRequest::Ask(absl::Duration wait_max) {
  const auto stub = v1::Admin::NewStub(OpenChannel(coordinator_, coordinator_name_, credentials_));
  grpc::ClientContext context;
  credentials_.Sign(context);
  EndAfter(context, wait_max);
  v1::DrainNodeRequest request;
  request.set_node(node_);
  v1::DrainNodeResponse response;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    in_flight_ = &context;
    if (cancelled_) context.TryCancel();
  }
  const grpc::Status status = stub->DrainNode(&context, request, &response);
  std::lock_guard<std::mutex> lock(mutex_);
  in_flight_ = nullptr;
  return FromGrpc(status, absl::StrCat("drain of node ", node_, " at coordinator ", coordinator_));
}

void DrainRequest::Cancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
  if (in_flight_ != nullptr) in_flight_->TryCancel();
}

}  // namespace longhaul::daemon
