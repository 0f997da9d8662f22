#include "compute/backend/cuda/cuda_buffers.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {
namespace {

template <cudaError_t (*Free)(void*)>
class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(CudaDevice& device, void* data, size_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  ~CudaBuffer() override {
    if (device_.WaitForAll()) Free(data_);
  }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  void* data() override { return data_; }
  size_t bytes() const override { return bytes_; }

 private:
  CudaDevice& device_;
  void* const data_;
  const size_t bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Buffer>> AllocateOnDevice(CudaDevice& device, size_t bytes) {
  LH_RETURN_IF_ERROR(CudaStatus(device.Use(), device.name()));
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
  if (error != cudaSuccess) {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    cudaGetLastError();  // what was noted of it: said below
    return CudaStatus(error, absl::StrCat("cannot allocate ", bytes, " bytes on ", device.name(),
                                          ", of ", total, " bytes of which ", free, " are free"));
  }
  return std::make_unique<CudaBuffer<cudaFree>>(device, data, bytes);
}

absl::StatusOr<std::unique_ptr<Buffer>> AllocatePinned(CudaDevice& device, size_t bytes) {
  LH_RETURN_IF_ERROR(CudaStatus(device.Use(), device.name()));
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, std::max<size_t>(bytes, 1));
  if (error != cudaSuccess) {
    cudaGetLastError();
    return CudaStatus(error, absl::StrCat("cannot pin ", bytes, " bytes of this machine's memory ",
                                          "for ", device.name()));
  }
  std::memset(data, 0, bytes);
  return std::make_unique<CudaBuffer<cudaFreeHost>>(device, data, bytes);
}

}  // namespace longhaul::compute
