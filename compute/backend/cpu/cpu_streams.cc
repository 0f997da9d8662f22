#include "compute/backend/cpu/cpu_streams.h"

#include <cstring>

namespace longhaul::compute {
namespace {

class CpuMark final : public Mark {
 public:
  absl::StatusOr<bool> Reached() override { return true; }
};

class CpuCopyStream final : public CopyStream {
 public:
  absl::Status After(const Mark&) override { return absl::OkStatus(); }
  absl::Status ToDevice(void* device, const void* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
    return absl::OkStatus();
  }
  absl::Status ToHost(void* host, const void* device, size_t bytes) override {
    return ToDevice(host, device, bytes);
  }
  absl::StatusOr<std::unique_ptr<Mark>> MarkNow() override { return MakeCpuMark(); }
};

}  // namespace

std::unique_ptr<Mark> MakeCpuMark() { return std::make_unique<CpuMark>(); }
std::unique_ptr<CopyStream> MakeCpuCopyStream() { return std::make_unique<CpuCopyStream>(); }

}  // namespace longhaul::compute
