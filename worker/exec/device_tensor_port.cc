#include <utility>

#include "base/status_macros.h"
#include "worker/exec/device_links.h"
#include "worker/exec/device_receiver.h"
#include "worker/exec/device_sender.h"
#include "worker/exec/tensor_port.h"

namespace longhaul::worker {
namespace {

class DeviceTensorPort final : public TensorPort {
 public:
  DeviceTensorPort(compute::Backend& backend, DeviceLinks links)
      : backend_(backend), links_(std::move(links)) {}

  absl::Status Start(Exchange& exchange, Clock& clock) {
    LH_ASSIGN_OR_RETURN(sender_, DeviceSender::Make(backend_, exchange, links_, clock));
    LH_ASSIGN_OR_RETURN(receiver_, DeviceReceiver::Make(backend_, exchange, links_, clock));
    return absl::OkStatus();
  }

  absl::Status Send(int peer_group, const FrameKey& key, const compute::DeviceSpan& values,
                    absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(const DeviceLink* const link, links_.Find(peer_group));
    return sender_->Send(*link, key, values, deadline);
  }

  absl::Status Receive(int peer_group, const FrameKey& key, const compute::DeviceSpan& values,
                       absl::Time deadline) override {
    LH_ASSIGN_OR_RETURN(const DeviceLink* const link, links_.Find(peer_group));
    return receiver_->Receive(*link, key, values, deadline);
  }

  absl::Status Finish(absl::Time deadline) override {
    LH_RETURN_IF_ERROR(receiver_->PrepareCheck());
    LH_RETURN_IF_ERROR(backend_.Synchronize());
    LH_RETURN_IF_ERROR(receiver_->Check());
    return sender_->Finish(deadline);
  }

 private:
  compute::Backend& backend_;
  const DeviceLinks links_;
  std::unique_ptr<DeviceSender> sender_;
  std::unique_ptr<DeviceReceiver> receiver_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorPort>> MakeDeviceTensorPort(
    compute::Backend& backend, Exchange& exchange, absl::Span<const LinkOptions> links,
    Clock& clock) {
  LH_ASSIGN_OR_RETURN(DeviceLinks device_links, DeviceLinks::Make(backend, links));
  auto port = std::make_unique<DeviceTensorPort>(backend, std::move(device_links));
  LH_RETURN_IF_ERROR(port->Start(exchange, clock));
  return port;
}

}  // namespace longhaul::worker
