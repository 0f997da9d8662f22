#include "compute/backend/cuda/device_facts.h"

#include <cuda_runtime.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// On the emulated machine, which each test may break and leaves whole.
class DeviceFactsTest : public ::testing::Test {
 protected:
  ~DeviceFactsTest() override { machine_ = {}; }
  std::string Refusal(int device) {
    const absl::Status status = ReadCudaDevice(device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  }
  emulated::Machine& machine_ = emulated::TheMachine();
};

TEST_F(DeviceFactsTest, NameItsCard) {
  machine_.devices = 2;
  const auto first = ReadCudaDevice(0), second = ReadCudaDevice(1);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->name, "emulated");
  EXPECT_EQ(first->major, 9);
  EXPECT_EQ(first->minor, 0);
  EXPECT_EQ(first->memory_bytes, 1 << 30);
  EXPECT_EQ(first->driver_cuda_version, "13.0");
  EXPECT_THAT(first->uuid, testing::MatchesRegex("GPU-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-"
                                                 "[0-9a-f]+"));
  EXPECT_EQ(first->uuid.size(), 40u);
  EXPECT_NE(first->uuid, second->uuid);
  EXPECT_EQ(first->pci_bus_id, "0000:01:00.0");
  EXPECT_EQ(second->pci_bus_id, "0000:02:00.0");
  EXPECT_EQ(DescribeCudaBuild(), "CUDA 13.0 for compute capability 8.0, 9.0 and later");
}

TEST_F(DeviceFactsTest, SayWhatIsWrong) {
  EXPECT_THAT(Refusal(1), AllOf(HasSubstr("cuda:1: there is no such card"),
                                HasSubstr("this machine has 1 card, cuda:0;")));
  EXPECT_THAT(Refusal(-1), HasSubstr("cuda:-1: there is no such card"));
  machine_.devices = 4;
  EXPECT_THAT(Refusal(4), HasSubstr("has 4 cards, cuda:0 to cuda:3;"));
  machine_.capability = 75;
  EXPECT_THAT(Refusal(0), AllOf(HasSubstr("cuda:0 (emulated) has compute capability 7.5"),
                                HasSubstr("this build has code for 8.0, 9.0 and later"),
                                HasSubstr("too old: cards from 8.0 on will do")));
  machine_.devices = 0;
  EXPECT_THAT(Refusal(0), AllOf(HasSubstr("cudaErrorNoDevice"), HasSubstr("sees no card")));
  machine_.driver_version = 12040;
  EXPECT_THAT(Refusal(0), AllOf(HasSubstr("the driver supports CUDA 12.4"),
                                HasSubstr("made with CUDA 13.0"), HasSubstr("newer driver")));
  machine_.driver_version = 0;
  EXPECT_THAT(Refusal(0), HasSubstr("no NVIDIA driver is loaded"));
}

TEST_F(DeviceFactsTest, TellTheMemory) {
  const auto memory = ReadCudaMemory(0);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->total_bytes, 1 << 30);
  EXPECT_GT(memory->free_bytes, 0);
  EXPECT_LE(memory->free_bytes, memory->total_bytes);
}

}  // namespace
}  // namespace longhaul::compute
