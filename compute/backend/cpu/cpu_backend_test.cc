#include "compute/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(CpuBackend, BuffersAreZeroedAndAligned) {
  const auto backend = MakeCpuBackend(1);
  EXPECT_EQ(backend->kind(), DeviceKind::kCpu);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100'000}}) {
    const auto buffer = backend->Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ((*buffer)->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data()) % 64, 0);
    const char* data = static_cast<const char*>((*buffer)->data());
    EXPECT_TRUE(std::all_of(data, data + bytes, [](char byte) { return byte == 0; }));
  }
}

TEST(CpuBackend, SaysWhatDoesNotFit) {
  const auto backend = MakeCpuBackend(1);
  for (const size_t bytes : {size_t{1} << 50, SIZE_MAX}) {
    const auto buffer = backend->Allocate(bytes);
    EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(buffer.status().message()), HasSubstr(std::to_string(bytes)));
  }
}

// A stage allocates several arrays: what counts is their sum.
TEST(CpuBackend, CountsWhatIsAllocated) {
  CpuBackend backend(1, 1000);
  auto first = backend.Allocate(600);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status refused = backend.Allocate(401).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("1000"), HasSubstr("600")));
  EXPECT_TRUE(backend.Allocate(400).ok());
  first->reset();
  EXPECT_TRUE(backend.Allocate(1000).ok());
}

TEST(CpuBackend, CopiesAllOfManyPieces) {
  const auto backend = MakeCpuBackend(3);
  std::vector<int> from(300'001), to(from.size());
  std::iota(from.begin(), from.end(), 1);
  ASSERT_TRUE(backend->Copy(to.data(), from.data(), (from.size() - 1) * sizeof(int)).ok());
  EXPECT_EQ(to.back(), 0);
  from.back() = 0;
  EXPECT_EQ(to, from);
}

TEST(CpuBackend, CopiesAndClears) {
  const auto backend = MakeCpuBackend(1);
  const std::vector<int> host = {1, 2, 3};
  const auto buffer = backend->Allocate(12);
  ASSERT_TRUE(buffer.ok());
  std::vector<int> back(3);
  ASSERT_TRUE(backend->CopyToDevice((*buffer)->data(), host.data(), 12).ok());
  ASSERT_TRUE(backend->CopyToHost(back.data(), (*buffer)->data(), 12).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_EQ(back, host);
  ASSERT_TRUE(backend->Zero((*buffer)->data(), 12).ok());
  ASSERT_TRUE(backend->CopyToHost(back.data(), (*buffer)->data(), 12).ok());
  ASSERT_TRUE(backend->Synchronize().ok());
  EXPECT_THAT(back, Each(0));
}

TEST(CpuBackend, NumericClassNamesLibraryAndKernelsButNoThreads) {
  const std::string name = MakeCpuBackend(1)->numeric_class();
  EXPECT_THAT(name, MatchesRegex("cpu-longhaul-3-(fma|openblas-[0-9.]+-[A-Za-z0-9_]+)-f32"));
  EXPECT_EQ(name, MakeCpuBackend(3)->numeric_class());
}

}  // namespace
}  // namespace longhaul::compute
