#include "worker/comm/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

// Two connections and frames 0 and 1 sent, which connection 0 may carry.
class SendQueueTest : public ::testing::Test {
 protected:
  SendQueueTest() {
    for (uint32_t micro_batch = 0; micro_batch < 2; ++micro_batch) {
      EXPECT_TRUE(queue_.Reserve(FrameKind::kActivation, absl::InfiniteFuture()).ok());
      queue_.Push(TestKey(FrameKind::kActivation, micro_batch, 1), "frame");
    }
    queue_.Dialling(0);
    EXPECT_TRUE(queue_.Welcomed(0, {0, 0}).ok());
  }

  static ExchangeOptions Options() {
    ExchangeOptions options = TestOptions(0);
    options.links[0].connections = 2;
    return options;
  }

  const ExchangeOptions options_ = Options();
  Counters counters_;
  const LinkContext context_{options_, options_.links[0], 0, RealClock(), counters_};
  const LinkHealth health_{2, absl::InfiniteDuration(), RealClock()};
  SendQueue queue_{context_, health_};
};

TEST_F(SendQueueTest, AWelcomeMayBeOvertakenOnAnotherConnection) {
  queue_.Dialling(1);
  // The peer made its welcome, then took frame 0 and said so on connection 0, which was faster.
  ASSERT_TRUE(queue_.Consumed(0).ok());
  const absl::Status status = queue_.Welcomed(1, {0, 0});
  EXPECT_TRUE(status.ok()) << status;
  const auto message = queue_.NextMessage(1, absl::InfiniteFuture());
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<FrameChunk>(*message).sequence, 1u);
}

TEST_F(SendQueueTest, APeerThatForgotWhatItConsumedBeforeTheDialWasRestarted) {
  ASSERT_TRUE(queue_.Consumed(0).ok());
  queue_.Dialling(1);
  const absl::Status status = queue_.Welcomed(1, {0, 0});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("restarted within this epoch"));
}

}  // namespace
}  // namespace longhaul::worker
