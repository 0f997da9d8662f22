// Tensors through ports: on a device at one end, on a device or on the CPU at the other. The device
// is an emulated card, and the CPU taken for one, on which the same logic runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "worker/exec/testing/port_side.h"

namespace longhaul::worker {
namespace {

using compute::BFloat16;

class DeviceTensorPort : public ::testing::TestWithParam<std::string> {};

// More tensors than there are buffers, both ways at once; each is overwritten as soon as it is
// sent.
TEST_P(DeviceTensorPort, TensorsArriveAsBetweenProcessors) {
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

TEST_P(DeviceTensorPort, FramesHoldTheBytesOfAProcessor) {
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
TEST_P(DeviceTensorPort, ReceivedTensorsWaitForTheirTurn) {
  constexpr uint32_t kTensors = 14;  // three times through all buffers
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

TEST_P(DeviceTensorPort, ASteadyStreamAllocatesNothing) {
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

TEST_P(DeviceTensorPort, BFloat16sAreWidenedAndRounded) {
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

INSTANTIATE_TEST_SUITE_P(All, DeviceTensorPort, ::testing::Values("none", "bf16", "int8", "zstd"));

// Whatever the link's codec, they cross as they are.
TEST(DeviceTensorPortTest, TiedTensorsKeepTheirBits) {
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

// The port's thread is kept busy, so that the device is far ahead of it.
TEST(DeviceTensorPortTest, ATiedTensorCrossesBeforeItIsOverwritten) {
  const LinkOptions link = LinkWith("none", 1);
  for (const End here : DeviceEnds()) {
    TwoStages stages(link);
    stages.Start();
    Side<> last(here, stages, 1, link);
    ASSERT_TRUE(last.Send(FrameKind::kGradient, 0).ok());
    ASSERT_TRUE(last.port().Finish(stages.Soon()).ok());
    ASSERT_TRUE(last.Send(FrameKind::kGradient, 1).ok());  // waits for the window
    const std::vector<float> head = TestValues(3, 50);
    last.Write(head);
    ASSERT_TRUE(last.Send(FrameKind::kTiedGradient, 0, 50).ok());
    Must(last.backend().Zero(last.span().data(), 50 * sizeof(float)));
    Must(last.backend().Synchronize());
    for (const uint32_t m : {0, 1}) ASSERT_TRUE(stages.Receive(FrameKind::kGradient, m, 0).ok());
    std::vector<float> received(50);
    ASSERT_TRUE(stages.stage(0)
                    .Receive(1, TestKey(FrameKind::kTiedGradient, 0, 0), absl::MakeSpan(received),
                             stages.Soon())
                    .ok());
    EXPECT_EQ(received, head);
  }
}

}  // namespace
}  // namespace longhaul::worker
