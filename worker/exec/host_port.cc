#include "worker/exec/tensor_port.h"

namespace longhaul::worker {
namespace {

class HostPort final : public TensorPort {
 public:
  HostPort(compute::Backend& backend, Exchange* exchange)
      : backend_(backend), exchange_(exchange) {}

  absl::Status Send(int peer_group, const FrameKey& key, const compute::DeviceSpan& values,
                    absl::Time deadline) override {
    return exchange_->Send(peer_group, key, values.As<float>(), deadline);
  }
  absl::Status Receive(int peer_group, const FrameKey& key, const compute::DeviceSpan& values,
                       absl::Time deadline) override {
    return exchange_->Receive(peer_group, key, values.As<float>(), deadline);
  }
  absl::Status Finish(absl::Time) override { return backend_.Synchronize(); }

 private:
  compute::Backend& backend_;
  Exchange* const exchange_;
};

}  // namespace

std::unique_ptr<TensorPort> MakeHostPort(compute::Backend& backend, Exchange* exchange) {
  return std::make_unique<HostPort>(backend, exchange);
}

}  // namespace longhaul::worker
