#include "worker/comm/sequence_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace longhaul::worker {
namespace {

TEST(SequenceSet, EveryOrderOfAddingAgreesWithAPlainSet) {
  std::vector<uint64_t> order = {0, 1, 2, 3, 5, 6};
  do {
    SequenceSet sequences;
    std::set<uint64_t> plain;
    for (const uint64_t sequence : order) {
      sequences.Add(sequence);
      sequences.Add(sequence);
      plain.insert(sequence);
      uint64_t before = 0;
      while (plain.count(before) > 0) ++before;
      ASSERT_EQ(sequences.before(), before);
      ASSERT_EQ(sequences.ahead(), std::set<uint64_t>(plain.lower_bound(before), plain.end()));
      for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(sequences.Contains(i), plain.count(i) > 0);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace longhaul::worker
