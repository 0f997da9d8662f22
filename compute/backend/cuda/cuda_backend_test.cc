#include "compute/backend/cuda/cuda_backend.h"

#include <vector>

#include "compute/backend/cuda/launch.h"
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

// The emulation itself: threads meet where a card's would, and a kernel that hangs is found.
__global__ void ReverseKernel(int* values) {
  __shared__ int all[64];
  all[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = all[63 - threadIdx.x];
}

__global__ void ShuffleKernel(int* values) {
  values[threadIdx.x] = __shfl_xor_sync(0xffffffff, values[threadIdx.x], 1);
}

__global__ void HangKernel(int* values) {
  if (threadIdx.x > 0) __syncthreads();
  values[0] = 1;
}

TEST(EmulationTest, ThreadsOfABlockMeet) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  std::vector<int> values(64), reversed(64), swapped(64);
  for (int i = 0; i < 64; ++i) {
    values[i] = reversed[63 - i] = i;
    swapped[i ^ 1] = 63 - i;
  }
  // Twice, since the order of the threads alternates.
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<int> now = values;
    ASSERT_TRUE(cuda::Launch(*backend, "reverse", {1, 64}, ReverseKernel, now.data()).ok());
    EXPECT_EQ(now, reversed);
    ASSERT_TRUE(cuda::Launch(*backend, "shuffle", {1, 64}, ShuffleKernel, now.data()).ok());
    EXPECT_EQ(now, swapped);
  }
}

TEST(EmulationDeathTest, AKernelThatHangsIsFound) {
  const auto backend = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  int value = 0;
  EXPECT_DEATH(cuda::Launch(*backend, "hang", {1, 64}, HangKernel, &value).IgnoreError(),
               "a kernel hangs: 1 of 64 threads");
}

}  // namespace
}  // namespace longhaul::compute
