#include "cli/node_device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(NodeDevice, OfAProcessor) {
  v1::NodeSummary node;
  node.set_flops_per_second(1.25e11);
  node.set_bytes_per_second(1 << 30);
  node.set_memory_bytes(int64_t{4} << 30);
  EXPECT_EQ(DeviceInShort(node), "cpu");
  EXPECT_THAT(
      DeviceRows(node),
      ElementsAre(ElementsAre("device", "cpu"), ElementsAre("matrix rate", "125.0 GFLOP/s"),
                  ElementsAre("memory", "4.0 GiB"), ElementsAre("memory rate", "1.0 GiB/s")));
  node.set_device_name("Some Processor");
  EXPECT_EQ(DeviceInShort(node), "cpu");
  EXPECT_EQ(DeviceToJson(node).dump(), R"({"kind":"cpu","name":"Some Processor"})");
}

TEST(NodeDevice, ACardShowsWhatItSays) {
  v1::NodeSummary node;
  node.set_device_kind("cuda");
  node.set_device_name("NVIDIA H100");
  node.set_bfloat16_flops_per_second(7e14);
  node.set_memory_bytes(int64_t{76} << 30);
  node.mutable_card()->set_uuid("GPU-1");
  node.mutable_card()->set_memory_bytes(int64_t{80} << 30);
  node.mutable_card_readings()->set_temperature_celsius(64);
  node.mutable_card_readings()->set_utilization(0.5);
  node.mutable_card_readings()->set_uncorrected_errors(0);
  EXPECT_EQ(DeviceInShort(node), "NVIDIA H100");
  const auto rows = DeviceRows(node);
  EXPECT_THAT(rows, Contains(ElementsAre("device", "cuda: NVIDIA H100")));
  EXPECT_THAT(rows, Contains(ElementsAre("card", "GPU-1")));
  EXPECT_THAT(rows, Contains(ElementsAre("matrix rate, bf16", "700000.0 GFLOP/s")));
  EXPECT_THAT(rows, Contains(ElementsAre("memory", "76.0 GiB of the card's 80.0 GiB")));
  EXPECT_THAT(rows, Contains(ElementsAre("temperature", "64 °C")));
  EXPECT_THAT(rows, Contains(ElementsAre("busy", "50 % of the time")));
  EXPECT_THAT(rows, Contains(ElementsAre("uncorrected errors", "0")));
  EXPECT_THAT(rows, Not(Contains(Contains("power")))) << "what a card does not tell is not shown";
  const auto json = DeviceToJson(node);
  EXPECT_EQ(json["card"]["memory_bytes"], int64_t{80} << 30);
  EXPECT_EQ(json["readings"].dump(),
            R"({"temperature_celsius":64.0,"utilization":0.5,"uncorrected_errors":0})");
}

}  // namespace
}  // namespace longhaul::cli
