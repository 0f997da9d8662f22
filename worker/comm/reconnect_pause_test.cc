#include "worker/comm/reconnect_pause.h"

#include <set>

#include "gtest/gtest.h"

namespace longhaul::worker {
namespace {

ExchangeOptions OfGroup(int group) {
  ExchangeOptions options;
  options.group = group;
  options.stage = 1;
  options.jitter_seed = 7;
  return options;
}

LinkOptions To(int group) {
  LinkOptions link;
  link.peer_group = group;
  link.peer_stage = 2;
  return link;
}

TEST(ReconnectPause, DoublesFromTheShortestToTheLongest) {
  const ExchangeOptions options = OfGroup(1);
  for (int failures = 0; failures < 100; ++failures) {
    const absl::Duration longest =
        failures < 6 ? options.reconnect_min * (1 << failures) : options.reconnect_max;
    const absl::Duration pause = ReconnectPause(options, To(3), 0, failures);
    EXPECT_GE(pause, longest / 2) << failures;
    EXPECT_LE(pause, longest) << failures;
  }
}

// Also not those of one stage's replicas, to one stage's replicas.
TEST(ReconnectPause, NoTwoConnectionsComeBackInStep) {
  std::set<absl::Duration> pauses;
  for (const int from : {1, 2, 3}) {
    for (const int to : {4, 5, 6}) {
      for (const int connection : {0, 1}) {
        pauses.insert(ReconnectPause(OfGroup(from), To(to), connection, 3));
      }
    }
  }
  EXPECT_EQ(pauses.size(), 18u);
}

}  // namespace
}  // namespace longhaul::worker
