#include "compute/backend/cpu/cpu_backend.h"

#include <cblas.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compute/backend/cpu/chunks.h"
#include "compute/backend/cpu/simd/kernels.h"

namespace longhaul::compute {
namespace {

// Of our kernels' bits: the number rises with every change of them.
constexpr int kKernelRevision = 3;
constexpr size_t kAlignment = 64;
constexpr size_t kHugePageBytes = size_t{2} << 20;

class CpuBuffer : public Buffer {
 public:
  // `allocated` counts these bytes already.
  CpuBuffer(void* data, size_t bytes, std::atomic<uint64_t>& allocated)
      : data_(data), bytes_(bytes), allocated_(allocated) {}
  ~CpuBuffer() override {
    std::free(data_);
    allocated_ -= bytes_;
  }
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;
  void* data() override { return data_; }
  size_t bytes() const override { return bytes_; }

 private:
  void* const data_;
  const size_t bytes_;
  std::atomic<uint64_t>& allocated_;
};

// Linux grants more than there is and kills the process that touches it; so the backend counts.
uint64_t PhysicalMemoryBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

// The version in "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string OpenBlasVersion() {
  const std::vector<std::string> words = absl::StrSplit(openblas_get_config(), ' ');
  return words.size() > 1 ? words[1] : "unknown";
}

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(int threads) {
  return std::make_unique<CpuBackend>(threads, PhysicalMemoryBytes());
}

CpuBackend::CpuBackend(int threads, uint64_t memory_bytes_max)
    : memory_bytes_max_(memory_bytes_max), pool_(threads) {
  openblas_set_num_threads(1);
}

std::string CpuBackend::numeric_class() const {
  const std::string ours = absl::StrCat("cpu-longhaul-", kKernelRevision);
  if (BestKernels<float>().multiply != nullptr) return ours + "-fma-f32";
  return absl::StrCat(ours, "-openblas-", OpenBlasVersion(), "-", openblas_get_corename(), "-f32");
}

std::unique_ptr<Recording> CpuBackend::MakeRecording() {
  class Calls final : public Recording {
    absl::Status Run(absl::FunctionRef<absl::Status()> work) override { return work(); }
  };
  return std::make_unique<Calls>();
}

const OperatorKernels<BFloat16>& CpuBackend::Kernels(BFloat16) const {
  LH_CHECK(false, "this backend has no kernels for bfloat16");
}

absl::StatusOr<std::unique_ptr<Buffer>> CpuBackend::Allocate(size_t bytes) {
  const uint64_t allocated = allocated_bytes_;
  const uint64_t available = memory_bytes_max_ - allocated;
  const bool is_large = bytes >= kHugePageBytes;
  void* data = nullptr;
  if (bytes > available || ::posix_memalign(&data, is_large ? kHugePageBytes : kAlignment,
                                            bytes > 0 ? bytes : kAlignment) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes; this machine has ", memory_bytes_max_,
                     " bytes of memory, of which ", allocated, " are taken"));
  }
  // Products read columns of matrices, each element of which lies in another small page. Only whole
  // huge pages, so that no more memory is used; it is a hint, and works as well without.
  if (is_large) ::madvise(data, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  std::memset(data, 0, bytes);
  allocated_bytes_ += bytes;
  return std::make_unique<CpuBuffer>(data, bytes, allocated_bytes_);
}

absl::Status CpuBackend::CopyToDevice(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
  return absl::OkStatus();
}

absl::Status CpuBackend::CopyToHost(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
  return absl::OkStatus();
}

absl::Status CpuBackend::Copy(void* to, const void* from, size_t bytes) {
  constexpr int64_t kCopyChunkBytes = int64_t{1} << 17;
  ForChunks(*this, static_cast<int64_t>(bytes), kCopyChunkBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Zero(void* device, size_t bytes) {
  if (bytes > 0) std::memset(device, 0, bytes);
  return absl::OkStatus();
}

absl::Status CpuBackend::Synchronize() { return absl::OkStatus(); }

void CpuBackend::ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  pool_.Run(tasks, task);
}

}  // namespace longhaul::compute
