// The emulation itself: threads of a block meet where a card's would, streams and graphs run when
// they are waited for, and what would hang a card ends the test.
#include <vector>

#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/launch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

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

__global__ void AddKernel(int* value, int more) { *value += more; }

class EmulationTest : public ::testing::Test {
 protected:
  ~EmulationTest() override {
    backend_ = nullptr;
    emulated::TheMachine() = {};
  }
  std::unique_ptr<CudaBackend> backend_ = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  const cudaStream_t stream_ = backend_->stream();
};
using EmulationDeathTest = EmulationTest;

TEST_F(EmulationTest, ThreadsOfABlockMeet) {
  std::vector<int> values(64), reversed(64), swapped(64);
  for (int i = 0; i < 64; ++i) {
    values[i] = reversed[63 - i] = i;
    swapped[i ^ 1] = 63 - i;
  }
  // Twice, since the order of the threads alternates.
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<int> now = values;
    ASSERT_TRUE(cuda::Launch(*backend_, "reverse", {1, 64}, ReverseKernel, now.data()).ok());
    EXPECT_EQ(now, values) << "not yet";
    ASSERT_TRUE(backend_->Synchronize().ok());
    EXPECT_EQ(now, reversed);
    ASSERT_TRUE(cuda::Launch(*backend_, "shuffle", {1, 64}, ShuffleKernel, now.data()).ok());
    ASSERT_TRUE(backend_->Synchronize().ok());
    EXPECT_EQ(now, swapped);
  }
}

TEST_F(EmulationDeathTest, AKernelThatHangsIsFound) {
  int value = 0;
  ASSERT_TRUE(cuda::Launch(*backend_, "hang", {1, 64}, HangKernel, &value).ok());
  EXPECT_DEATH(backend_->Synchronize().IgnoreError(), "a kernel hangs: 1 of 64 threads");
  emulated::TheMachine().fails = true;  // so that it never runs
}

TEST_F(EmulationDeathTest, AWaitWithoutEndIsFound) {
  emulated::TheMachine().hung = {stream_};
  int value = 0;
  ASSERT_TRUE(cuda::Launch(*backend_, "add", {1, 1}, AddKernel, &value, 1).ok());
  EXPECT_DEATH(cudaStreamSynchronize(stream_), "cudaStreamSynchronize would never return");
  EXPECT_DEATH(cudaDeviceSynchronize(), "cudaDeviceSynchronize would never return");
  emulated::TheMachine().fails = true;
}

TEST_F(EmulationTest, AStreamOfAnotherDeviceIsRefused) {
  emulated::TheMachine().devices = 2;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int value = 0;
  emulated::Launch(stream_, 1, 1, [&] { AddKernel(&value, 1); });
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(value, 0);
}

TEST_F(EmulationTest, CopiesBeyondAnAllocationAreRefused) {
  const auto buffer = *backend_->Allocate(256);
  char* const device = static_cast<char*>(buffer->data());
  char host[257] = {};
  EXPECT_TRUE(backend_->CopyToDevice(device, host, 256).ok());
  EXPECT_FALSE(backend_->CopyToDevice(device, host, 257).ok());
  EXPECT_FALSE(backend_->CopyToHost(host, device + 1, 256).ok());
  EXPECT_FALSE(backend_->Copy(device, host, 1).ok());
  EXPECT_FALSE(backend_->Zero(host, 1).ok());
  cudaGetLastError();
}

TEST_F(EmulationTest, GraphsRepeatWhatWasCaptured) {
  int value = 0, more = 5;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_TRUE(cuda::Launch(*backend_, "add", {1, 1}, AddKernel, &value, more).ok());
  more = 100;
  ASSERT_TRUE(cuda::Launch(*backend_, "add", {1, 1}, AddKernel, &value, 2).ok());
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_TRUE(backend_->Synchronize().ok());
  EXPECT_EQ(value, 0) << "captured, not run";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(value, 0) << "not yet";
  ASSERT_TRUE(backend_->Synchronize().ok());
  EXPECT_EQ(value, 21);
}

TEST_F(EmulationTest, WhatACaptureForbidsEndsIt) {
  const auto attempt = [&](cudaError_t (*forbidden)(cudaStream_t)) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(forbidden(stream_), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  };
  attempt([](cudaStream_t) {
    void* data;
    return cudaMalloc(&data, 1);
  });
  attempt([](cudaStream_t stream) { return cudaStreamSynchronize(stream); });
  attempt([](cudaStream_t stream) { return cudaStreamQuery(stream); });
  cudaGetLastError();
}

}  // namespace
}  // namespace longhaul::compute
