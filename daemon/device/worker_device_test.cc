#include "daemon/device/worker_device.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/card_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

WorkerConfig CardConfig(int card) {
  WorkerConfig config;
  config.cuda_device = card;
  return config;
}

// On the emulated machine of this process: one card of 1 GiB.
class WorkerDeviceTest : public testing::Test {
 protected:
  // Cards of its own: claims are the host's, where this test may run twice.
  WorkerDeviceTest() { setenv("LONGHAUL_EMULATED_NAME", absl::StrCat(getpid()).c_str(), 1); }
  absl::StatusOr<std::unique_ptr<WorkerDevice>> Open(const WorkerConfig& config) {
    return WorkerDevice::Open(config, {"host", 2, 4096 * kMiB, "Some Processor"}, RealClock(),
                              log_);
  }
  std::string logged_;
  Log log_{LogStyle::kPriority, LogLevel::kInfo,
           [this](const std::string& line) { logged_ += line; }};
};

TEST_F(WorkerDeviceTest, AProcessorIsAsConfigured) {
  WorkerConfig config;
  config.threads = 1;
  const auto device = Open(config);
  ASSERT_TRUE(device.ok()) << device.status();
  worker::NodeFacts facts;
  (*device)->Describe(facts);
  EXPECT_EQ(facts.device_kind, "cpu");
  EXPECT_EQ(facts.device_name, "Some Processor");
  EXPECT_FALSE(facts.card.has_value());
  EXPECT_EQ(facts.threads, 1);
  EXPECT_EQ(facts.memory_bytes, static_cast<int64_t>(0.8 * 4096 * kMiB));
  EXPECT_GT(facts.process_bytes, 0);
  EXPECT_EQ((*(*device)->MakeBackend())->numeric_class(), facts.numeric_class);
  EXPECT_FALSE((*device)->TakeReadings().has_value());
  EXPECT_TRUE((*device)->health().ok());
}

TEST_F(WorkerDeviceTest, ACardIsMeasuredClaimedAndOpenedForEachStage) {
  const auto device = Open(CardConfig(0));
  ASSERT_TRUE(device.ok()) << device.status();
  worker::NodeFacts facts;
  (*device)->Describe(facts);
  EXPECT_EQ(facts.device_kind, "cuda");
  EXPECT_EQ(facts.device_name, "emulated");
  ASSERT_TRUE(facts.card.has_value());
  EXPECT_EQ(facts.card->compute_capability, "9.0");
  EXPECT_THAT(facts.card->driver, HasSubstr("CUDA 13.0"));
  EXPECT_EQ(facts.card->memory_bytes, 1024 * kMiB);
  EXPECT_EQ(facts.threads, 1);
  EXPECT_GT(facts.flops_per_second, 0);
  EXPECT_GT(facts.bytes_per_second, 0);
  EXPECT_GE(facts.memory_bytes, 512 * kMiB);
  EXPECT_LE(facts.memory_bytes, 1024 * kMiB - CardMemoryMargin(1024 * kMiB));
  for (int stage = 0; stage < 2; ++stage) {
    const auto backend = (*device)->MakeBackend();
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ((*backend)->numeric_class(), facts.numeric_class);
  }
  EXPECT_THAT(std::string(Open(CardConfig(0)).status().message()), HasSubstr("cuda:0"));
  EXPECT_THAT(std::string(Open(CardConfig(0)).status().message()), HasSubstr("is used by process"));
}

TEST_F(WorkerDeviceTest, WithoutItsManagementLibraryThatIsSaidOnce) {
  ASSERT_TRUE(Open(CardConfig(0)).ok());
  EXPECT_THAT(logged_, HasSubstr("are not watched reason=\"NVIDIA's management library"));
}

TEST_F(WorkerDeviceTest, MemoryIsCapped) {
  WorkerConfig config = CardConfig(0);
  config.memory_bytes = 100 * kMiB;
  worker::NodeFacts facts;
  (*Open(config))->Describe(facts);
  EXPECT_EQ(facts.memory_bytes, 100 * kMiB);
  config.memory_bytes = 4096 * kMiB;
  (*Open(config))->Describe(facts);
  EXPECT_LT(facts.memory_bytes, 1024 * kMiB);
  EXPECT_THAT(logged_, HasSubstr("has less memory free"));
}

TEST_F(WorkerDeviceTest, WhatIsNotThereIsSaidAndNothingStaysTaken) {
  EXPECT_THAT(std::string(Open(CardConfig(7)).status().message()),
              HasSubstr("cuda:7: there is no such card; this machine has 1 card"));
  EXPECT_TRUE(Open(CardConfig(0)).ok());
  EXPECT_TRUE(Open(CardConfig(0)).ok());
}

TEST_F(WorkerDeviceTest, AFailedCardIsNotOpenedAgain) {
  const auto device = Open(CardConfig(0));
  ASSERT_TRUE(device.ok()) << device.status();
  (*device)->Fail(absl::UnavailableError("the first reason"));
  (*device)->Fail(absl::UnavailableError("the second"));
  EXPECT_EQ((*device)->health(), absl::UnavailableError("cuda:0: the first reason"));
  EXPECT_EQ((*device)->MakeBackend().status(), (*device)->health());
}

TEST(UsableCardMemory, LeavesAMarginAndSaysWhatIsMissing) {
  const int64_t total = 80 * 1024 * kMiB;
  EXPECT_EQ(CardMemoryMargin(total), 256 * kMiB + total / 50);
  EXPECT_EQ(*UsableCardMemory("cuda:0", {total, total}, 0), total - CardMemoryMargin(total));
  EXPECT_EQ(*UsableCardMemory("cuda:0", {total, total}, kMiB * 20), kMiB * 20);
  const auto none = UsableCardMemory("cuda:0", {1000 * kMiB, total}, 0);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("cuda:0 has no memory left: 1000 MiB of 81920 MiB are free"),
                    HasSubstr("nvidia-smi")));
}

}  // namespace
}  // namespace longhaul::daemon
