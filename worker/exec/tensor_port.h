// The way of a stage's boundary tensors between its device and the exchange.
#ifndef LONGHAUL_WORKER_EXEC_TENSOR_PORT_H_
#define LONGHAUL_WORKER_EXEC_TENSOR_PORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/ids.h"
#include "compute/backend/backend.h"
#include "compute/backend/element.h"
#include "worker/comm/exchange.h"

namespace longhaul::worker {

// For the thread that calls the backend. Frames on the wire are the same whatever the device.
class TensorPort {
 public:
  virtual ~TensorPort() = default;

  // Sends the values as Exchange::Send does. What is called on the backend later may overwrite
  // them. An error of the way out may show only at a later call, at the latest at Finish.
  virtual absl::Status Send(int peer_group, const FrameKey& key, const compute::DeviceSpan& values,
                            absl::Time deadline) = 0;
  // Waits for the frame as Exchange::Receive does. What is called on the backend later sees the
  // values. What the codec never writes may show only at Finish; it is no number until then.
  virtual absl::Status Receive(int peer_group, const FrameKey& key,
                               const compute::DeviceSpan& values, absl::Time deadline) = 0;
  // Waits until all that was called on the backend has run and the exchange has all that was sent:
  // the first error of these. Sends that wait for the peer longer than `deadline` are errors.
  virtual absl::Status Finish(absl::Time deadline) = 0;
};

// `links` are the exchange's, which may be null where there are none. Takes all its memory now:
// ResourceExhausted if that does not fit. Everything outlives the port. A port that ends before its
// sends cancels the exchange.
absl::StatusOr<std::unique_ptr<TensorPort>> MakeTensorPort(compute::Backend& backend,
                                                           Exchange* exchange,
                                                           absl::Span<const LinkOptions> links,
                                                           Clock& clock);

// Tensors in host memory: the exchange reads and writes them where they are.
std::unique_ptr<TensorPort> MakeHostTensorPort(compute::Backend& backend, Exchange* exchange);

// Tensors in a device's memory: they are encoded and decoded there, cross between device and pinned
// memory beside the operators, and are handed to the exchange by a thread of the port. Neither
// makes the caller wait, as long as not all of a few buffers are under way. Works on every backend.
absl::StatusOr<std::unique_ptr<TensorPort>> MakeDeviceTensorPort(
    compute::Backend& backend, Exchange& exchange, absl::Span<const LinkOptions> links,
    Clock& clock);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_TENSOR_PORT_H_
