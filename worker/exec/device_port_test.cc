// Tensors through ports: on a device at one end, on a device or on the CPU at the other. The device
// is an emulated card, and the CPU taken for one, on which the same logic runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/watched_clock.h"
#include "compression/codec.h"
#include "compute/testing/counting_backend.h"
#include "compute/testing/op_testing.h"
#include "worker/comm/testing/two_stages.h"
#include "worker/exec/tensor_port.h"

namespace longhaul::worker {
namespace {

using compute::Backend;
using compute::BFloat16;
using compute::DeviceSpan;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kElements = static_cast<int64_t>(kTestElements);

void Must(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

// What is at the two ends: an emulated card, the CPU through the port of devices, or the CPU.
enum class End { kCard, kCpuAsDevice, kCpu };

std::vector<End> DeviceEnds() {
  if (!compute::kHasTestCuda) return {End::kCpuAsDevice};
  return {End::kCard, End::kCpuAsDevice};
}

LinkOptions LinkWith(const std::string& codec, int window = 2) {
  LinkOptions link = TestOptions(0).links[0];
  link.codec = codec;
  link.window = window;
  return link;
}

const compression::Codec& Find(const std::string& codec) {
  return **compression::FindCodec(absl::string_view(codec));
}

std::vector<uint8_t> Encode(const std::string& codec, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(Find(codec).EncodedSizeMax(values.size()));
  bytes.resize(Find(codec).Encode(values, absl::MakeSpan(bytes)));
  return bytes;
}

std::vector<float> RoundTrip(const std::string& codec, const std::vector<float>& values) {
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
                ? MakeHostPort(backend_, &stages.stage(stage))
                : MakeDevicePort(backend_, stages.stage(stage), {&link, 1}, clock).value();
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
    return port_->Send(1 - stage_, key, DeviceSpan(span().first(static_cast<size_t>(elements))),
                       stages_.Soon());
  }
  absl::Status Receive(FrameKind kind, uint32_t micro_batch, int64_t elements = kElements) {
    const FrameKey key = TestKey(kind, micro_batch, static_cast<uint32_t>(stage_));
    return port_->Receive(1 - stage_, key, DeviceSpan(span().first(static_cast<size_t>(elements))),
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
  const std::unique_ptr<Backend> own_;
  compute::CountingBackend backend_;
  TwoStages& stages_;
  const int stage_;
  std::unique_ptr<compute::Buffer> tensor_;
  std::unique_ptr<TensorPort> port_;
};

class DevicePort : public ::testing::TestWithParam<std::string> {};

// More tensors than there are buffers, both ways at once; each is overwritten as soon as it is
// sent.
TEST_P(DevicePort, TensorsArriveAsBetweenProcessors) {
  const LinkOptions link = LinkWith(GetParam(), 8);
  for (const End here : DeviceEnds()) {
    for (const End there : {End::kCard, End::kCpuAsDevice, End::kCpu}) {
      if (there == End::kCard && !compute::kHasTestCuda) continue;
      TwoStages stages(link);
      stages.Start();
      Side<> first(here, stages, 0, link), second(there, stages, 1, link);
      for (uint32_t m = 0; m < 8; ++m) {
        first.Write(TestValues(m));
        ASSERT_TRUE(first.Send(FrameKind::kActivation, m).ok());
        second.Write(TestValues(100 + m));
        ASSERT_TRUE(second.Send(FrameKind::kGradient, m).ok());
      }
      Must(first.backend().Zero(first.span().data(), kElements * sizeof(float)));
      Must(second.backend().Zero(second.span().data(), kElements * sizeof(float)));
      for (const uint32_t m : {7, 0, 1, 2, 6, 5, 4, 3}) {
        ASSERT_TRUE(second.Receive(FrameKind::kActivation, m).ok());
        EXPECT_EQ(second.Read(), RoundTrip(GetParam(), TestValues(m))) << m;
        ASSERT_TRUE(first.Receive(FrameKind::kGradient, m).ok());
        EXPECT_EQ(first.Read(), RoundTrip(GetParam(), TestValues(100 + m))) << m;
      }
      EXPECT_TRUE(first.port().Finish(stages.Soon()).ok());
      EXPECT_TRUE(second.port().Finish(stages.Soon()).ok());
      EXPECT_TRUE(stages.stage(0).Flush(stages.Soon()).ok());
      EXPECT_TRUE(stages.stage(1).Flush(stages.Soon()).ok());
    }
  }
}

TEST_P(DevicePort, FramesHoldTheBytesOfAProcessor) {
  const LinkOptions link = LinkWith(GetParam());
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> sender(here, stages, 0, link);
    std::vector<float> values = TestValues(0);
    for (float& value : values) value = value / 3 - 0.1f;
    sender.Write(values);
    ASSERT_TRUE(sender.Send(FrameKind::kActivation, 0).ok());
    std::vector<uint8_t> received;
    const auto take = [&](absl::Span<const uint8_t> bytes) {
      received.assign(bytes.begin(), bytes.end());
      return absl::OkStatus();
    };
    ASSERT_TRUE(stages.stage(1)
                    .ReceiveEncoded(0, TestKey(FrameKind::kActivation, 0, 1), kTestElements, take,
                                    stages.Soon())
                    .ok());
    EXPECT_EQ(received, Encode(GetParam(), values));
  }
}

// Receives run ahead of the operators: none of them may see the tensor that comes after its own.
TEST_P(DevicePort, ReceivedTensorsWaitForTheirTurn) {
  constexpr uint32_t kTensors = 8;
  const LinkOptions link = LinkWith(GetParam(), kTensors);
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> sender(End::kCpu, stages, 0, link), receiver(here, stages, 1, link);
    const auto all = receiver.backend().Allocate(kTensors * kElements * sizeof(float)).value();
    float* const kept = static_cast<float*>(all->data());
    for (uint32_t m = 0; m < kTensors; ++m) {
      sender.Write(TestValues(m));
      ASSERT_TRUE(sender.Send(FrameKind::kActivation, m).ok());
    }
    for (uint32_t m = 0; m < kTensors; ++m) {
      ASSERT_TRUE(receiver.Receive(FrameKind::kActivation, m).ok());
      Must(receiver.backend().Copy(kept + m * kElements, receiver.span().data(),
                                   kElements * sizeof(float)));
    }
    EXPECT_TRUE(receiver.port().Finish(stages.Soon()).ok());
    for (uint32_t m = 0; m < kTensors; ++m) {
      Must(receiver.backend().Copy(receiver.span().data(), kept + m * kElements,
                                   kElements * sizeof(float)));
      EXPECT_EQ(receiver.Read(), RoundTrip(GetParam(), TestValues(m))) << m;
    }
  }
}

TEST_P(DevicePort, ASteadyStreamAllocatesNothing) {
  const LinkOptions link = LinkWith(GetParam());
  TwoStages stages(link);
  stages.Start();
  Side<> first(DeviceEnds()[0], stages, 0, link), second(DeviceEnds()[0], stages, 1, link);
  const int before = first.backend().allocations() + second.backend().allocations();
  for (uint32_t m = 0; m < 20; ++m) {
    ASSERT_TRUE(first.Send(FrameKind::kActivation, m).ok());
    ASSERT_TRUE(second.Receive(FrameKind::kActivation, m).ok());
  }
  EXPECT_TRUE(second.port().Finish(stages.Soon()).ok());
  EXPECT_EQ(first.backend().allocations() + second.backend().allocations(), before);
}

TEST_P(DevicePort, BFloat16sAreWidenedAndRounded) {
  if (!compute::kHasTestCuda) GTEST_SKIP() << "processors have no bfloat16";
  const LinkOptions link = LinkWith(GetParam());
  TwoStages stages(link);
  stages.Start();
  Side<BFloat16> card(End::kCard, stages, 0, link);
  Side<> processor(End::kCpu, stages, 1, link);
  std::vector<float> values = TestValues(0), rounded(values.size());
  for (float& value : values) value = value / 3 - 0.1f;
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = BFloat16(values[i]);
  card.Write(values);
  ASSERT_TRUE(card.Send(FrameKind::kActivation, 0).ok());
  ASSERT_TRUE(processor.Receive(FrameKind::kActivation, 0).ok());
  EXPECT_EQ(processor.Read(), RoundTrip(GetParam(), rounded));
  processor.Write(values);
  ASSERT_TRUE(processor.Send(FrameKind::kGradient, 0).ok());
  ASSERT_TRUE(card.Receive(FrameKind::kGradient, 0).ok());
  std::vector<float> expected = RoundTrip(GetParam(), values);
  for (float& value : expected) value = BFloat16(value);
  EXPECT_EQ(card.Read(), expected);
}

INSTANTIATE_TEST_SUITE_P(All, DevicePort, ::testing::Values("none", "bf16", "int8", "zstd"));

// Whatever the link's codec, they cross as they are.
TEST(DevicePortTest, TiedTensorsKeepTheirBits) {
  const LinkOptions link = LinkWith("int8");
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> first(here, stages, 0, link), last(here, stages, 1, link);
    const std::vector<float> head = TestValues(3, 50), sum = TestValues(4, 50);
    last.Write(head);
    ASSERT_TRUE(last.Send(FrameKind::kTiedGradient, 0, 50).ok());
    Must(last.backend().Zero(last.span().data(), 50 * sizeof(float)));
    ASSERT_TRUE(first.Receive(FrameKind::kTiedGradient, 0, 50).ok());
    EXPECT_EQ(first.Read(50), head);
    first.Write(sum);
    ASSERT_TRUE(first.Send(FrameKind::kTiedSum, 0, 50).ok());
    ASSERT_TRUE(last.Receive(FrameKind::kTiedSum, 0, 50).ok());
    EXPECT_EQ(last.Read(50), sum);
    EXPECT_TRUE(first.port().Finish(stages.Soon()).ok());
    EXPECT_TRUE(last.port().Finish(stages.Soon()).ok());
  }
}

// A frame whose checksum is right and whose content no encoder writes.
TEST(DevicePortTest, SaysAtTheEndWhatCouldNotBeDecoded) {
  const LinkOptions link = LinkWith("int8");
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> receiver(here, stages, 1, link);
    std::vector<uint8_t> bytes(104, 1);
    bytes[3] = 0xbf;  // a negative scale
    Must(stages.stage(0).SendEncoded(1, TestKey(FrameKind::kActivation, 0, 1),
                                     {"int8", kTestElements, bytes}, stages.Soon()));
    receiver.Write(TestValues(0));
    ASSERT_TRUE(receiver.Receive(FrameKind::kActivation, 0).ok());
    for (const float value : receiver.Read()) ASSERT_TRUE(std::isnan(value));
    const absl::Status status = receiver.port().Finish(stages.Soon());
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("int8"), HasSubstr("stage 0")));
  }
}

TEST(DevicePortTest, RefusesAFrameOfAnotherSize) {
  const LinkOptions link = LinkWith("int8");
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> receiver(here, stages, 1, link);
    const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
    const std::vector<uint8_t> bytes(103);
    Must(stages.stage(0).SendEncoded(1, key, {"int8", kTestElements, bytes}, stages.Soon()));
    const absl::Status status = receiver.Receive(FrameKind::kActivation, 0);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("103 bytes for 100 values, expected 104"), HasSubstr("stage 0")));
  }
}

TEST(DevicePortTest, UnknownPeersAreRefused) {
  const LinkOptions link = LinkWith("none");
  TwoStages stages(link);
  stages.Start();
  Side<> side(End::kCpuAsDevice, stages, 0, link);
  const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(side.port().Send(7, key, DeviceSpan(side.span()), stages.Soon())));
  EXPECT_TRUE(
      absl::IsInvalidArgument(side.port().Receive(7, key, DeviceSpan(side.span()), stages.Soon())));
}

TEST(DevicePortTest, AnErrorOfTheWayOutShowsAtTheEndAndStays) {
  const LinkOptions link = LinkWith("bf16");
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> sender(here, stages, 0, link);
    stages.stage(0).Cancel(absl::AbortedError("the run was stopped"));
    sender.Send(FrameKind::kActivation, 0).IgnoreError();
    EXPECT_EQ(sender.port().Finish(stages.Soon()), absl::AbortedError("the run was stopped"));
    EXPECT_EQ(sender.Send(FrameKind::kActivation, 1), absl::AbortedError("the run was stopped"));
    EXPECT_EQ(sender.port().Finish(stages.Soon()), absl::AbortedError("the run was stopped"));
  }
}

// The peer takes nothing: the window is full, then all buffers are.
TEST(DevicePortTest, WaitsForBuffersUntilTheDeadlineAndEndsAtOnce) {
  const LinkOptions link = LinkWith("none", 1);
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> sender(here, stages, 0, link);
    const absl::Time past = RealClock().Now();
    ASSERT_TRUE(sender.Send(FrameKind::kActivation, 0).ok());  // takes the window
    ASSERT_TRUE(sender.port().Finish(stages.Soon()).ok());
    ASSERT_TRUE(sender.Send(FrameKind::kActivation, 1).ok());  // takes the buffer
    const FrameKey key = TestKey(FrameKind::kActivation, 2, 1);
    const absl::Status full = sender.port().Send(1, key, DeviceSpan(sender.span()), past);
    EXPECT_TRUE(absl::IsDeadlineExceeded(full)) << full;
    EXPECT_THAT(std::string(full.message()),
                AllOf(HasSubstr("activation of step 1 micro-batch 2"), HasSubstr("stage 1")));
    const absl::Status unsent = sender.port().Finish(past);
    EXPECT_TRUE(absl::IsDeadlineExceeded(unsent)) << unsent;
    EXPECT_THAT(std::string(unsent.message()),
                AllOf(HasSubstr("activation of step 1 micro-batch 1"), HasSubstr("stage 1")));
  }
}

TEST(DevicePortTest, ALinkThatIsFullWaitsForThePeer) {
  const LinkOptions link = LinkWith("none", 1);
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> sender(here, stages, 0, link);
    absl::Status status;
    std::thread executor([&] {
      for (uint32_t m = 0; m < 6 && status.ok(); ++m) {
        sender.Write(TestValues(m));
        status = sender.Send(FrameKind::kActivation, m);
      }
      status.Update(sender.port().Finish(stages.Soon()));
    });
    for (uint32_t m = 0; m < 6; ++m) {
      const auto values = stages.Receive(FrameKind::kActivation, m, 1);
      EXPECT_TRUE(values.ok() && *values == TestValues(m)) << m;
    }
    executor.join();
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(DevicePortTest, UnknownCodecsAreRefused) {
  TwoStages stages(LinkWith("none"));
  stages.Start();
  const auto backend = compute::MakeCpuBackend(1);
  const LinkOptions link = LinkWith("zip");
  EXPECT_TRUE(absl::IsInvalidArgument(
      MakeDevicePort(*backend, stages.stage(0), {&link, 1}, RealClock()).status()));
}

}  // namespace
}  // namespace longhaul::worker
