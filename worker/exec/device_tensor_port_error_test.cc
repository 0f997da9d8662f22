// What goes wrong between a device and the exchange, and how it is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "worker/exec/testing/port_side.h"

namespace longhaul::worker {
namespace {

using compute::DeviceSpan;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A frame whose checksum is right and whose content no encoder writes.
TEST(DeviceTensorPortTest, SaysAtTheEndWhatCouldNotBeDecoded) {
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

TEST(DeviceTensorPortTest, RefusesAFrameOfAnotherSize) {
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

TEST(DeviceTensorPortTest, UnknownPeersAreRefused) {
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

TEST(DeviceTensorPortTest, AnErrorOfTheWayOutShowsAtTheEndAndStays) {
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
TEST(DeviceTensorPortTest, WaitsForBuffersUntilTheDeadlineAndEndsAtOnce) {
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

TEST(DeviceTensorPortTest, ALinkThatIsFullWaitsForThePeer) {
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

TEST(DeviceTensorPortTest, UnknownCodecsAreRefused) {
  TwoStages stages(LinkWith("none"));
  stages.Start();
  const auto backend = compute::MakeCpuBackend(1);
  const LinkOptions link = LinkWith("zip");
  EXPECT_TRUE(absl::IsInvalidArgument(
      MakeDeviceTensorPort(*backend, stages.stage(0), {&link, 1}, RealClock()).status()));
}

}  // namespace
}  // namespace longhaul::worker
