#include "compute/backend/cuda/device_facts.h"

#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/architectures.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {
namespace {

constexpr char kBuilt[] = LONGHAUL_CUDA_BUILT_FOR;  // compute/cuda.cmake
constexpr int kOldestMajor = 8;                     // that has products of bfloat16

std::string Name(int device) { return absl::StrCat("cuda:", device); }

// As NVML and nvidia-smi write it.
std::string FormatUuid(const cudaUUID_t& uuid) {
  const std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

// What CUDA remembers of a failed call would show at the next kernel.
absl::Status Answer(cudaError_t error, int device) {
  if (error != cudaSuccess) cudaGetLastError();
  return CudaStatus(error, Name(device));
}

absl::Status CheckNumber(int device) {
  int count = 0;
  LH_RETURN_IF_ERROR(Answer(cudaGetDeviceCount(&count), device));
  if (device >= 0 && device < count) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      Name(device), ": there is no such card; this machine has ", count,
      count == 1 ? " card, cuda:0" : absl::StrCat(" cards, cuda:0 to cuda:", count - 1),
      "; `nvidia-smi -L` lists them, and CUDA_VISIBLE_DEVICES, if it is set, hides others"));
}

}  // namespace

void SetCudaEnvironment() {
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", /*overwrite=*/0);
  // cuDNN's frontend opens CUDA's runtime too, though ours is linked into the program: of those
  // that are installed, the one that we are built with.
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", "libcudart.so.13", /*overwrite=*/0);
}

std::string DescribeCudaBuild() {
  int toolkit = 0;
  cudaRuntimeGetVersion(&toolkit);
  return absl::StrCat("CUDA ", CudaVersionText(toolkit), " for compute capability ",
                      DescribeArchitectures(kBuilt));
}

absl::StatusOr<CudaDeviceFacts> ReadCudaDevice(int device) {
  LH_RETURN_IF_ERROR(CheckNumber(device));
  cudaDeviceProp properties;
  LH_RETURN_IF_ERROR(Answer(cudaGetDeviceProperties(&properties, device), device));
  int driver = 0;
  LH_RETURN_IF_ERROR(Answer(cudaDriverGetVersion(&driver), device));
  CudaDeviceFacts facts;
  facts.name.assign(properties.name, strnlen(properties.name, sizeof(properties.name)));
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.uuid = FormatUuid(properties.uuid);
  facts.pci_bus_id = absl::StrFormat("%04x:%02x:%02x.0", properties.pciDomainID,
                                     properties.pciBusID, properties.pciDeviceID);
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.driver_cuda_version = CudaVersionText(driver);
  if (HasCodeFor(kBuilt, facts.major, facts.minor)) return facts;
  const std::string remedy =
      facts.major < kOldestMajor
          ? absl::StrCat("it is too old: cards from ", kOldestMajor, ".0 on will do")
          : absl::StrCat("build for it: ./dev build --cuda ", facts.major, facts.minor);
  return absl::FailedPreconditionError(absl::StrCat(
      Name(device), " (", facts.name, ") has compute capability ", facts.major, ".", facts.minor,
      ", and this build has code for ", DescribeArchitectures(kBuilt), "; ", remedy));
}

absl::StatusOr<CudaMemory> ReadCudaMemory(int device) {
  LH_RETURN_IF_ERROR(Answer(cudaSetDevice(device), device));
  size_t free = 0, total = 0;
  LH_RETURN_IF_ERROR(Answer(cudaMemGetInfo(&free, &total), device));
  return CudaMemory{static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

}  // namespace longhaul::compute
