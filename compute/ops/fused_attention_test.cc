#include "compute/backend/cuda/fused_attention.h"

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/ops/causal_attention.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::compute::cuda {
namespace {

using ::testing::Each;

// What a library was asked, and what it answers.
struct Asked {
  int plans = 0, forwards = 0, backwards = 0;
  bool refuses = false, is_deterministic = true;
};

// Writes ones.
class FakePlan final : public AttentionPlan {
 public:
  FakePlan(CudaBackend& backend, Asked& asked, const AttentionExtents& extents)
      : backend_(backend), asked_(asked), extents_(extents) {}
  size_t forward_bytes() const override { return 100; }
  size_t backward_bytes() const override { return 200; }
  bool is_deterministic() const override { return asked_.is_deterministic; }
  absl::Status Forward(const AttentionMemory& memory, void* workspace) override {
    ++asked_.forwards;
    EXPECT_NE(workspace, nullptr);
    return Fill(memory.output, extents_.width());
  }
  absl::Status Backward(const AttentionMemory& memory, void* workspace) override {
    ++asked_.backwards;
    EXPECT_NE(workspace, nullptr);
    return Fill(memory.qkv_gradient, extents_.qkv_width());
  }

 private:
  absl::Status Fill(BFloat16* to, int64_t width) {
    const std::vector<BFloat16> ones(static_cast<size_t>(extents_.batch * extents_.context * width),
                                     BFloat16(1));
    return backend_.Upload(to, ones.data(), ones.size() * sizeof(BFloat16));
  }
  CudaBackend& backend_;
  Asked& asked_;
  const AttentionExtents extents_;
};

class FakeLibrary final : public FusedAttention {
 public:
  FakeLibrary(CudaBackend& backend, Asked& asked) : backend_(backend), asked_(asked) {}
  std::string name() const override { return "fake-1"; }
  absl::StatusOr<std::unique_ptr<AttentionPlan>> Plan(const AttentionExtents& extents) override {
    ++asked_.plans;
    if (asked_.refuses) return absl::UnimplementedError("too many heads");
    return std::make_unique<FakePlan>(backend_, asked_, extents);
  }

 private:
  CudaBackend& backend_;
  Asked& asked_;
};

class FusedAttentionTest : public ::testing::Test {
 protected:
  FusedAttentionTest() {
    backend_->UseFusedAttention(std::make_unique<FakeLibrary>(*backend_, asked_));
  }

  template <typename T>
  Values Forward(const CausalAttentionShape& shape, size_t misplaced = 0) {
    const size_t rows = static_cast<size_t>(shape.batch * shape.context);
    const size_t elements = rows * static_cast<size_t>(shape.qkv_width());
    GuardedBuffer<T> qkv(*backend_, TestValues(static_cast<int64_t>(elements + misplaced), 1));
    auto output = GuardedBuffer<T>::Poisoned(*backend_, rows * static_cast<size_t>(shape.width));
    auto lse = GuardedBuffer<Wide<T>>::Poisoned(*backend_, rows * static_cast<size_t>(shape.heads));
    GuardedBuffer<Wide<T>> workspace(
        *backend_, Values(static_cast<size_t>(CausalAttentionWorkspace(shape)), 0));
    EXPECT_TRUE(CausalAttentionForward<T>(*backend_, shape, qkv.span().subspan(misplaced),
                                          output.span(), lse.span(), workspace.span())
                    .ok());
    return output.Read();
  }

  template <typename T>
  std::string Kernel(const CausalAttentionShape& shape) {
    return *CausalAttentionKernel<T>(*backend_, shape);
  }

  const std::unique_ptr<CudaBackend> backend_ = *CudaBackend::Open(0, RealClock(), kDeviceWaitMax);
  Asked asked_;
};

constexpr CausalAttentionShape kShape{2, 5, 4, 2, 32};  // heads of 8 columns

TEST_F(FusedAttentionTest, TheLibraryServesWhatItTakes) {
  EXPECT_EQ(Kernel<BFloat16>(kShape), "fake-1, deterministic");
  EXPECT_THAT(Forward<BFloat16>(kShape), Each(1));
  EXPECT_EQ(asked_.forwards, 1);
  GuardedBuffer<BFloat16> qkv(*backend_, Values(2 * 5 * 64, 1)), output(*backend_, Values(320, 1)),
      gradient(*backend_, Values(320, 1));
  GuardedBuffer<float> lse(*backend_, Values(40, 1)),
      workspace(*backend_, Values(static_cast<size_t>(CausalAttentionWorkspace(kShape)), 0));
  auto qkv_gradient = GuardedBuffer<BFloat16>::Poisoned(*backend_, 2 * 5 * 64);
  EXPECT_TRUE(CausalAttentionBackward<BFloat16>(*backend_, kShape, qkv.span(), output.span(),
                                                lse.span(), gradient.span(), qkv_gradient.span(),
                                                workspace.span())
                  .ok());
  EXPECT_THAT(qkv_gradient.Read(), Each(1));
  EXPECT_EQ(asked_.backwards, 1);
  EXPECT_EQ(asked_.plans, 1) << "asked once for a shape";
  asked_.is_deterministic = false;
  EXPECT_EQ(Kernel<BFloat16>(kShape), "fake-1");
}

TEST_F(FusedAttentionTest, OurOwnKernelServesTheRest) {
  EXPECT_EQ(Kernel<float>(kShape), "own");
  EXPECT_THAT(Forward<float>(kShape), ::testing::Not(Each(1)));
  const CausalAttentionShape odd{2, 5, 4, 2, 48};  // heads of 12 columns
  EXPECT_EQ(Kernel<BFloat16>(odd), "own");
  Forward<BFloat16>(odd);
  EXPECT_EQ(asked_.plans, 0);
  Forward<BFloat16>(kShape, 1);  // memory between 16 bytes
  EXPECT_EQ(asked_.forwards, 0);
}

TEST_F(FusedAttentionTest, ARefusalIsKeptWithItsReason) {
  asked_.refuses = true;
  EXPECT_EQ(Kernel<BFloat16>(kShape), "own (too many heads)");
  EXPECT_THAT(Forward<BFloat16>(kShape), ::testing::Not(Each(1)));
  EXPECT_EQ(asked_.plans, 1);
}

TEST_F(FusedAttentionTest, WithoutALibrary) {
  backend_->UseFusedAttention(absl::NotFoundError("no cuDNN"));
  EXPECT_EQ(Kernel<BFloat16>(kShape), "own (no cuDNN)");
  EXPECT_EQ(Kernel<float>(kShape), "own");
  EXPECT_EQ(backend_->attention().library_name(), "own");
}

}  // namespace
}  // namespace longhaul::compute::cuda
