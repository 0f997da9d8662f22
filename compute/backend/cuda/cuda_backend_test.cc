#include "compute/backend/cuda/cuda_backend.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// On the emulated machine, which each test may break and leaves whole.
class CudaBackendTest : public ::testing::Test {
 protected:
  ~CudaBackendTest() override { machine_ = {}; }
  emulated::Machine& machine_ = emulated::TheMachine();
};

TEST_F(CudaBackendTest, SaysWhatIsMissing) {
  const auto refusal = [](int device) {
    const absl::Status status = MakeCudaBackend(device, RealClock()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(1), AllOf(HasSubstr("CUDA device 1"), HasSubstr("no such device")));
  EXPECT_THAT(refusal(-1), HasSubstr("no such device"));
  machine_.devices = 0;
  EXPECT_THAT(refusal(0), HasSubstr("cudaErrorNoDevice"));
  machine_.driver_version = 0;
  EXPECT_THAT(refusal(0), HasSubstr("no NVIDIA driver is loaded"));
}

TEST_F(CudaBackendTest, SaysWhatDoesNotFit) {
  const auto backend = MakeCudaBackend(0, RealClock());
  ASSERT_TRUE(backend.ok()) << backend.status();
  const auto buffer = (*backend)->Allocate(machine_.memory_bytes);
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(buffer.status().message()),
      AllOf(HasSubstr("cannot allocate 1073741824 bytes on CUDA device 0"), HasSubstr("are free")));
  EXPECT_TRUE((*backend)->Allocate(1 << 20).ok()) << "and goes on";
  EXPECT_TRUE((*backend)->Synchronize().ok());
}

TEST_F(CudaBackendTest, MemoryIsZeroedAndCopied) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  const auto a = *backend->Allocate(12), b = *backend->Allocate(12);
  std::vector<float> values(3, 7);
  ASSERT_TRUE(backend->CopyToHost(values.data(), a->data(), 12).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_EQ(values, std::vector<float>(3, 0));
  values = {1, 2, 3};
  std::vector<float> back(3);
  ASSERT_TRUE(backend->CopyToDevice(a->data(), values.data(), 12).ok());
  ASSERT_TRUE(backend->Copy(b->data(), a->data(), 12).ok());
  ASSERT_TRUE(backend->Zero(a->data(), 12).ok());
  ASSERT_TRUE(backend->CopyToHost(back.data(), b->data(), 12).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_EQ(back, values);
}

TEST_F(CudaBackendTest, ResultsComeWithTheSynchronisation) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  double* const device = *backend->ScratchOf<double>(1);
  double first = 0, second = 0;
  for (double* const result : {&first, &second}) {
    const double value = result == &first ? 3 : 4;
    ASSERT_TRUE(backend->CopyToDevice(device, &value, sizeof(value)).ok());
    ASSERT_TRUE(backend->Return(device, result).ok());
  }
  EXPECT_EQ(first, 0);
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 4);
}

TEST_F(CudaBackendTest, AFailedKernelIsAnError) {
  const auto backend = *MakeCudaBackend(0, RealClock());
  machine_.fails = true;
  EXPECT_EQ(backend->Synchronize().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(backend->Synchronize().message()),
              AllOf(HasSubstr("CUDA device 0"), HasSubstr("cudaErrorIllegalAddress")));
}

}  // namespace
}  // namespace longhaul::compute
