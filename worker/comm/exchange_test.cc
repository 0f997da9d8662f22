// What the executor sees of an exchange while the network is well.
#include "worker/comm/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "base/testing/watched_clock.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;

LinkOptions LinkWith(const std::string& codec, int connections, int window) {
  LinkOptions link = TestOptions(0).links[0];
  link.codec = codec;
  link.connections = connections;
  link.window = window;
  return link;
}

class ExchangeConnections : public ::testing::TestWithParam<int> {};

TEST_P(ExchangeConnections, FramesAreReceivedByKeyInAnyOrder) {
  TwoStages stages(LinkWith("none", GetParam(), 4));
  stages.Start();
  for (const uint32_t micro_batch : {0, 1, 2, 3}) {
    ASSERT_TRUE(stages.Send(FrameKind::kActivation, micro_batch, 1).ok());
    ASSERT_TRUE(stages.Send(FrameKind::kGradient, micro_batch, 0).ok());
  }
  for (const uint32_t micro_batch : {3, 0, 2, 1}) {
    const auto activation = stages.Receive(FrameKind::kActivation, micro_batch, 1);
    ASSERT_TRUE(activation.ok()) << activation.status();
    EXPECT_EQ(*activation, TestValues(micro_batch));
    const auto gradient = stages.Receive(FrameKind::kGradient, micro_batch, 0);
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    EXPECT_EQ(*gradient, TestValues(micro_batch));
  }
}

TEST_P(ExchangeConnections, FlushReturnsOnceEverythingIsConsumed) {
  TwoStages stages(LinkWith("none", GetParam(), 4));
  stages.Start();
  for (const uint32_t micro_batch : {0, 1, 2, 3}) {
    ASSERT_TRUE(stages.Send(FrameKind::kActivation, micro_batch, 1).ok());
  }
  std::atomic<bool> flushed = false;
  absl::Status status;
  std::thread flusher([&] {
    status = stages.stage(0).Flush(stages.Soon());
    flushed = true;
  });
  for (const uint32_t micro_batch : {0, 1, 2, 3}) {
    EXPECT_FALSE(flushed);
    ASSERT_TRUE(stages.Receive(FrameKind::kActivation, micro_batch, 1).ok());
  }
  flusher.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(stages.stage(0).counters().frames_sent, 4u);
  EXPECT_EQ(stages.stage(1).counters().frames_received, 4u);
}

INSTANTIATE_TEST_SUITE_P(All, ExchangeConnections, ::testing::Values(1, 4));

TEST(Exchange, EveryKindArrivesWithItsOwnEncoding) {
  TwoStages stages(LinkWith("int8", 1, 2));
  stages.Start();
  const std::vector<float> values = TestValues(3);
  for (const FrameKind kind : {FrameKind::kActivation, FrameKind::kEvaluationActivation}) {
    ASSERT_TRUE(stages.Send(kind, 3, 1).ok());
    const auto received = stages.Receive(kind, 3, 1);
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_NE(*received, values);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR((*received)[i], values[i], 0.02);
  }
  std::vector<float> tied(50, 0.1f), received(50);
  const FrameKey gradient = TestKey(FrameKind::kTiedGradient, 0, 0);
  ASSERT_TRUE(stages.stage(1).Send(0, gradient, tied, stages.Soon()).ok());
  ASSERT_TRUE(stages.stage(0).Receive(1, gradient, absl::MakeSpan(received), stages.Soon()).ok());
  EXPECT_EQ(received, tied);
  const FrameKey sum = TestKey(FrameKind::kTiedSum, 0, 1);
  ASSERT_TRUE(stages.stage(0).Send(1, sum, tied, stages.Soon()).ok());
  ASSERT_TRUE(stages.stage(1).Receive(0, sum, absl::MakeSpan(received), stages.Soon()).ok());
  EXPECT_EQ(received, tied);
}

TEST(Exchange, NormsAndVerdictAreDoubles) {
  TwoStages stages;
  stages.Start();
  const std::vector<double> norms = {1.0 / 3.0, 1e300, -0.0,
                                     std::numeric_limits<double>::infinity()};
  const FrameKey norms_key = TestKey(FrameKind::kNorms, 0, 0);
  ASSERT_TRUE(stages.stage(1).SendDoubles(0, norms_key, norms, stages.Soon()).ok());
  const auto received = stages.stage(0).ReceiveDoubles(1, norms_key, stages.Soon());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(*received, norms);
  const FrameKey verdict_key = TestKey(FrameKind::kVerdict, 0, 1);
  ASSERT_TRUE(stages.stage(0).SendDoubles(1, verdict_key, {}, stages.Soon()).ok());
  const auto verdict = stages.stage(1).ReceiveDoubles(0, verdict_key, stages.Soon());
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->empty());
}

TEST(Exchange, AValueThatIsNotFiniteArrivesAsOne) {
  for (const char* codec : {"none", "bf16", "int8", "zstd"}) {
    TwoStages stages(LinkWith(codec, 1, 2));
    stages.Start();
    std::vector<float> values(kTestElements, 1.0f);
    values[7] = std::numeric_limits<float>::infinity();
    const FrameKey key = TestKey(FrameKind::kGradient, 0, 0);
    ASSERT_TRUE(stages.stage(1).Send(0, key, values, stages.Soon()).ok());
    ASSERT_TRUE(stages.stage(0).Receive(1, key, absl::MakeSpan(values), stages.Soon()).ok());
    EXPECT_FALSE(std::isfinite(values[7])) << codec;
  }
}

TEST(Exchange, SendWaitsWhileTheWindowIsFullAndOnlyForItsKind) {
  WatchedClock clock(RealClock());
  TwoStages stages(TestOptions(0).links[0], clock);
  stages.Start();
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 1, 1).ok());
  const absl::Status full =
      stages.stage(0).Send(1, TestKey(FrameKind::kActivation, 2, 1), TestValues(2), clock.Now());
  EXPECT_EQ(full.code(), absl::StatusCode::kDeadlineExceeded) << full;
  const absl::Time start = clock.Now();
  absl::Status status;
  std::thread sender([&] { status = stages.Send(FrameKind::kActivation, 2, 1); });
  EXPECT_TRUE(clock.AwaitWaits(1, start + absl::Seconds(20)));
  EXPECT_TRUE(stages.Send(FrameKind::kEvaluationActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 0, 1).ok());
  sender.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(stages.Receive(FrameKind::kActivation, 2, 1).ok());
}

TEST(Exchange, WhatThePlanDoesNotHaveIsRefusedBeforeItIsSent) {
  TwoStages stages;
  stages.Start();
  Exchange& stage = stages.stage(0);
  const auto code = [&](int peer, FrameKey key, size_t elements) {
    return stage.Send(peer, key, TestValues(0, elements), stages.Soon()).code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(7, TestKey(FrameKind::kActivation, 0, 7), 100), invalid);
  EXPECT_EQ(code(1, TestKey(FrameKind::kActivation, 0, 0), 100), invalid);
  EXPECT_EQ(code(1, TestKey(FrameKind::kActivation, 0, 1), 101), invalid);
  EXPECT_EQ(code(1, TestKey(FrameKind::kGradient, 0, 1), 100), invalid);
  EXPECT_EQ(code(1, TestKey(FrameKind::kVerdict, 0, 1), 1), invalid);
  FrameKey old = TestKey(FrameKind::kActivation, 0, 1);
  old.epoch.number -= 1;
  EXPECT_EQ(code(1, old, 100), invalid);
  EXPECT_EQ(
      stage.ReceiveDoubles(1, TestKey(FrameKind::kVerdict, 0, 0), stages.Soon()).status().code(),
      invalid);
}

TEST(Exchange, AFrameOfAnotherSizeIsNotTakenForTheExpectedOne) {
  TwoStages stages;
  stages.Start();
  const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
  ASSERT_TRUE(stages.stage(0).Send(1, key, TestValues(0, 99), stages.Soon()).ok());
  std::vector<float> values(100);
  const absl::Status status =
      stages.stage(1).Receive(0, key, absl::MakeSpan(values), stages.Soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 99 elements, expected 100"));
}

TEST(Exchange, CancelEndsEveryWaitWithItsFirstReason) {
  WatchedClock clock(RealClock());
  TwoStages stages(TestOptions(0).links[0], clock);
  stages.Start();
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 1, 1).ok());
  const absl::Time start = clock.Now();
  absl::Status sent, received, flushed;
  std::thread sender([&] { sent = stages.Send(FrameKind::kActivation, 2, 1); });
  std::thread receiver([&] { received = stages.Receive(FrameKind::kGradient, 0, 0).status(); });
  std::thread flusher([&] { flushed = stages.stage(0).Flush(stages.Soon()); });
  EXPECT_TRUE(clock.AwaitWaits(3, start + absl::Seconds(20)));
  stages.stage(0).Cancel(absl::AbortedError("the run was stopped"));
  stages.stage(0).Cancel(absl::InternalError("too late"));
  sender.join();
  receiver.join();
  flusher.join();
  for (const absl::Status& status : {sent, received, flushed}) {
    EXPECT_EQ(status, absl::AbortedError("the run was stopped"));
  }
  EXPECT_EQ(stages.Send(FrameKind::kVerdict, 0, 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stages.Send(FrameKind::kActivation, 3, 1), absl::AbortedError("the run was stopped"));
}

TEST(Exchange, BadOptionsAreRefused) {
  InProcessNetwork network(RealClock());
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  const auto code = [&](auto change) {
    ExchangeOptions options = TestOptions(0);
    change(options);
    return MakeExchange(options, *transport, RealClock()).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](ExchangeOptions& o) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.token = ""; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.chunk_bytes = 95; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links[0].codec = "zip"; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links[0].window = 0; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links[0].connections = 65; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links[0].peer_group = 0; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links.push_back(o.links[0]); }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.links[0].tensor_elements = ~uint64_t{0}; }), invalid);
  EXPECT_EQ(code([](ExchangeOptions& o) { o.reconnect_min = absl::ZeroDuration(); }), invalid);
}

}  // namespace
}  // namespace longhaul::worker
