#include "worker/exec/tensor_port.h"

namespace longhaul::worker {
namespace {

class HostTensorPort final : public TensorPort {
 public:
  HostTensorPort(compute::Backend& backend, Exchange* exchange)
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

std::unique_ptr<TensorPort> MakeHostTensorPort(compute::Backend& backend, Exchange* exchange) {
  return std::make_unique<HostTensorPort>(backend, exchange);
}

}  // namespace longhaul::worker
