// What a build without CUDA has in the place of the CUDA backend.
#include "absl/strings/str_cat.h"
#include "compute/backend/backend.h"
#include "compute/backend/cuda/device_facts.h"

namespace longhaul::compute {
namespace {

absl::Status Absent(int device) {
  return absl::FailedPreconditionError(
      absl::StrCat("cuda:", device,
                   ": this build has no CUDA; build with ./dev build --cuda, or write `device: "
                   "cpu`"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device, Clock&, absl::Duration) {
  return Absent(device);
}

void SetCudaEnvironment() {}

std::string DescribeCudaBuild() { return "no CUDA"; }

absl::StatusOr<CudaDeviceFacts> ReadCudaDevice(int device) { return Absent(device); }

absl::StatusOr<CudaMemory> ReadCudaMemory(int device) { return Absent(device); }

}  // namespace longhaul::compute
