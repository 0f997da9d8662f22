#include "model/liveness.h"

#include "base/rng.h"
#include "gtest/gtest.h"
#include "model/buffer_plan.h"

namespace longhaul::model {
namespace {

void ExpectNoOverlap(const std::vector<LiveTensor>& tensors, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_GE(packing.offsets[i], 0);
    EXPECT_EQ(packing.offsets[i] % kAlignElements, 0);
    EXPECT_LE(packing.offsets[i] + tensors[i].elements, packing.elements);
    for (size_t j = 0; j < i; ++j) {
      const bool same_time =
          tensors[i].first <= tensors[j].last && tensors[j].first <= tensors[i].last;
      const bool same_place = packing.offsets[i] < packing.offsets[j] + tensors[j].elements &&
                              packing.offsets[j] < packing.offsets[i] + tensors[i].elements;
      EXPECT_FALSE(same_time && same_place) << "tensors " << j << " and " << i;
    }
  }
}

TEST(LivenessTest, EmptyListNeedsNothing) { EXPECT_EQ(PackByLiveness({}).elements, 0); }

TEST(LivenessTest, ChainNeedsTwoBuffers) {
  const std::vector<LiveTensor> chain = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const Packing packing = PackByLiveness(chain);
  EXPECT_EQ(packing.elements, 2 * Padded(100));
  ExpectNoOverlap(chain, packing);
}

TEST(LivenessTest, RandomTensorsNeverOverlapWhileBothLive) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<LiveTensor> tensors;
    for (uint64_t i = 0; i < 60; ++i) {
      const auto bits = RandomBits(seed, RandomStream::kBatch, 0, 0, i);
      const int first = static_cast<int>(bits[0] % 40);
      tensors.push_back({1 + bits[1] % 500, first, first + static_cast<int>(bits[2] % 10)});
    }
    ExpectNoOverlap(tensors, PackByLiveness(tensors));
  }
}

}  // namespace
}  // namespace longhaul::model
