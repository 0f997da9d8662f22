// For tests of ports: one end of a link, with its device, its port and a tensor.
#ifndef LONGHAUL_WORKER_EXEC_TESTING_PORT_SIDE_H_
#define LONGHAUL_WORKER_EXEC_TESTING_PORT_SIDE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "compression/codec.h"
#include "compute/testing/counting_backend.h"
#include "compute/testing/op_testing.h"
#include "worker/comm/testing/two_stages.h"
#include "worker/exec/tensor_port.h"

namespace longhaul::worker {

inline constexpr int64_t kElements = static_cast<int64_t>(kTestElements);

inline void Must(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

// What is at the two ends: an emulated card, the CPU through the port of devices, or the CPU.
enum class End { kCard, kCpuAsDevice, kCpu };

inline std::vector<End> DeviceEnds() {
  if (!compute::kHasTestCuda) return {End::kCpuAsDevice};
  return {End::kCard, End::kCpuAsDevice};
}

inline LinkOptions LinkWith(const std::string& codec, int window = 2) {
  LinkOptions link = TestOptions(0).links[0];
  link.codec = codec;
  link.window = window;
  return link;
}

inline const compression::Codec& Find(const std::string& codec) {
  return **compression::FindCodec(absl::string_view(codec));
}

inline std::vector<uint8_t> Encode(const std::string& codec, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(Find(codec).EncodedSizeMax(values.size()));
  bytes.resize(Find(codec).Encode(values, absl::MakeSpan(bytes)));
  return bytes;
}

inline std::vector<float> RoundTrip(const std::string& codec, const std::vector<float>& values) {
  std::vector<float> decoded(values.size());
  Must(Find(codec).Decode(Encode(codec, values), absl::MakeSpan(decoded)));
  return decoded;
}

// One stage's device, port and a tensor on the device.
template <typename T = float>
class Side {
 public:
  Side(End end, TwoStages& stages, int stage, LinkOptions link, Clock& clock = RealClock())
      : own_(end == End::kCard ? compute::TestCudaBackend() : compute::MakeCpuBackend(1)),
        backend_(*own_),
        stages_(stages),
        stage_(stage) {
    link.peer_group = link.peer_stage = 1 - stage;
    tensor_ = backend_.Allocate(kElements * sizeof(T)).value();
    port_ = end == End::kCpu
                ? MakeHostTensorPort(backend_, &stages.stage(stage))
                : MakeDeviceTensorPort(backend_, stages.stage(stage), {&link, 1}, clock).value();
  }
  ~Side() {
    port_.reset();
    tensor_.reset();
  }

  compute::CountingBackend& backend() { return backend_; }
  TensorPort& port() { return *port_; }
  absl::Span<T> span() { return {static_cast<T*>(tensor_->data()), kTestElements}; }

  // Queued, so that later operators may overwrite the values.
  absl::Status Send(FrameKind kind, uint32_t micro_batch, int64_t elements = kElements) {
    const FrameKey key = TestKey(kind, micro_batch, static_cast<uint32_t>(1 - stage_));
    return port_->Send(1 - stage_, key,
                       compute::DeviceSpan(span().first(static_cast<size_t>(elements))),
                       stages_.Soon());
  }
  absl::Status Receive(FrameKind kind, uint32_t micro_batch, int64_t elements = kElements) {
    const FrameKey key = TestKey(kind, micro_batch, static_cast<uint32_t>(stage_));
    return port_->Receive(1 - stage_, key,
                          compute::DeviceSpan(span().first(static_cast<size_t>(elements))),
                          stages_.Soon());
  }
  void Write(const std::vector<float>& floats) {
    const std::vector<T> values(floats.begin(), floats.end());
    Must(backend_.Upload(tensor_->data(), values.data(), values.size() * sizeof(T)));
  }
  std::vector<float> Read(size_t elements = kTestElements) {
    std::vector<T> values(elements);
    Must(backend_.CopyToHost(values.data(), tensor_->data(), values.size() * sizeof(T)));
    Must(backend_.Synchronize());
    return {values.begin(), values.end()};
  }

 private:
  const std::unique_ptr<compute::Backend> own_;
  compute::CountingBackend backend_;
  TwoStages& stages_;
  const int stage_;
  std::unique_ptr<compute::Buffer> tensor_;
  std::unique_ptr<TensorPort> port_;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_TESTING_PORT_SIDE_H_
