// Broken streams, partitions and deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr uint32_t kFrames = 8;

LinkOptions LinkWithConnections(int connections) {
  LinkOptions link = TestOptions(0).links[0];
  link.connections = connections;
  return link;
}

// Sends kFrames activations down and as many gradients up, more than the windows hold, and checks
// that each arrives once with its own values.
void ExchangeFrames(TwoStages& stages) {
  const auto send = [&](FrameKind kind, int to) {
    for (uint32_t micro_batch = 0; micro_batch < kFrames; ++micro_batch) {
      const absl::Status status = stages.Send(kind, micro_batch, to);
      ASSERT_TRUE(status.ok()) << status;
    }
    const absl::Status flushed = stages.stage(1 - to).Flush(stages.Soon());
    EXPECT_TRUE(flushed.ok()) << flushed;
  };
  const auto receive = [&](FrameKind kind, int at) {
    for (uint32_t micro_batch = 0; micro_batch < kFrames; ++micro_batch) {
      const auto values = stages.Receive(kind, micro_batch, at);
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(*values, TestValues(micro_batch));
    }
  };
  std::thread down([&] { send(FrameKind::kActivation, 1); });
  std::thread up([&] { send(FrameKind::kGradient, 0); });
  std::thread last([&] { receive(FrameKind::kActivation, 1); });
  receive(FrameKind::kGradient, 0);
  last.join();
  down.join();
  up.join();
  for (const int stage : {0, 1}) {
    EXPECT_EQ(stages.stage(stage).counters().frames_received, kFrames);
    EXPECT_EQ(stages.stage(stage).counters().corrupt_dropped, 0u);
  }
}

class ExchangeFaults : public ::testing::TestWithParam<int> {};

TEST_P(ExchangeFaults, ABreakAfterAnyMessageLosesAndRepeatsNothing) {
  // A whole undisturbed direction is a hello, a welcome, and 4 chunks and a reply a frame.
  for (int messages = 0; messages <= 2 + 5 * static_cast<int>(kFrames); ++messages) {
    SCOPED_TRACE(messages);
    TwoStages stages(LinkWithConnections(GetParam()));
    stages.network.BreakAfter(TestAddress(0), messages);
    stages.network.BreakAfter(TestAddress(1), messages);
    stages.Start();
    ExchangeFrames(stages);
  }
}

TEST_P(ExchangeFaults, RepeatedBreaksLoseAndRepeatNothing) {
  TwoStages stages(LinkWithConnections(GetParam()));
  stages.Start();
  std::thread breaker([&] {
    for (int i = 0; i < 200; ++i) {
      stages.network.Break(TestAddress(i % 2));
      std::this_thread::yield();
    }
  });
  ExchangeFrames(stages);
  breaker.join();
}

TEST_P(ExchangeFaults, APartitionThatHealsLosesNothing) {
  TwoStages stages(LinkWithConnections(GetParam()));
  stages.Start();
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.stage(0).Flush(stages.Soon()).ok());
  stages.network.Partition(TestAddress(1), true);
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 1, 1).ok());
  ASSERT_TRUE(stages.Send(FrameKind::kActivation, 2, 1).ok());
  EXPECT_EQ(stages.stage(1)
                .Receive(0, TestKey(FrameKind::kActivation, 1, 1), {},
                         RealClock().Now() + absl::Milliseconds(20))
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  stages.network.Partition(TestAddress(1), false);
  for (const uint32_t micro_batch : {1, 2}) {
    const auto values = stages.Receive(FrameKind::kActivation, micro_batch, 1);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(*values, TestValues(micro_batch));
  }
  EXPECT_TRUE(stages.stage(0).Flush(stages.Soon()).ok());
  while (stages.stage(0).counters().reconnects == 0) std::this_thread::yield();
  EXPECT_EQ(stages.stage(1).counters().frames_received, 3u);
}

TEST_P(ExchangeFaults, WhatIsConsumedWhileTheLinkIsDownFreesTheSenderLater) {
  TwoStages stages(LinkWithConnections(GetParam()));
  stages.Start();
  for (const uint32_t micro_batch : {0, 1}) {
    ASSERT_TRUE(stages.Send(FrameKind::kActivation, micro_batch, 1).ok());
  }
  while (stages.stage(1).counters().frames_received < 2) std::this_thread::yield();
  stages.network.Partition(TestAddress(1), true);
  // Out of order, so that the welcome's watermark alone does not tell it.
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 1, 1).ok());
  stages.network.Partition(TestAddress(1), false);
  EXPECT_TRUE(stages.Send(FrameKind::kActivation, 2, 1).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 0, 1).ok());
  ASSERT_TRUE(stages.Receive(FrameKind::kActivation, 2, 1).ok());
  EXPECT_TRUE(stages.stage(0).Flush(stages.Soon()).ok());
}

// A network that flips one bit in every `period`-th chunk that its streams write.
class Corrupting : public Transport {
 public:
  Corrupting(Transport& transport, int period) : transport_(transport), period_(period) {}
  absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                     const std::string& address,
                                                     absl::Time deadline) override {
    absl::StatusOr<std::unique_ptr<ClientStream>> stream = transport_.Dial(node, address, deadline);
    if (!stream.ok()) return stream;
    return std::make_unique<Stream>(*std::move(stream), *this);
  }

 private:
  class Stream : public ClientStream {
   public:
    Stream(std::unique_ptr<ClientStream> stream, Corrupting& network)
        : stream_(std::move(stream)), network_(network) {}
    absl::Status Write(const StreamMessage& message) override {
      const auto* const chunk = std::get_if<FrameChunk>(&message);
      if (chunk == nullptr || ++network_.chunks_ % network_.period_ != 0) {
        return stream_->Write(message);
      }
      FrameChunk corrupt = *chunk;
      corrupt.bytes.back() = static_cast<char>(corrupt.bytes.back() ^ 1);
      return stream_->Write(corrupt);
    }
    absl::StatusOr<StreamReply> Read() override { return stream_->Read(); }
    void Cancel() override { stream_->Cancel(); }

   private:
    const std::unique_ptr<ClientStream> stream_;
    Corrupting& network_;
  };

  Transport& transport_;
  const int period_;
  std::atomic<int> chunks_{0};
};

TEST_P(ExchangeFaults, CorruptFramesAreSentAgainUntilTheyArriveWhole) {
  InProcessNetwork network(RealClock());
  const std::unique_ptr<Transport> honest = network.MakeTransport();
  Corrupting transport(*honest, 13);
  ExchangeOptions options[] = {TestOptions(0), TestOptions(1)};
  for (ExchangeOptions& stage : options) stage.links[0].connections = GetParam();
  const std::unique_ptr<Exchange> sender = MakeTestExchange(options[0], transport, RealClock());
  const std::unique_ptr<Exchange> receiver = MakeTestExchange(options[1], *honest, RealClock());
  const Door door(network, TestAddress(1), options[1], *receiver, RealClock());
  const absl::Time soon = RealClock().Now() + absl::Seconds(30);
  for (uint32_t micro_batch = 0; micro_batch < 20; ++micro_batch) {
    const FrameKey key = TestKey(FrameKind::kActivation, micro_batch, 1);
    ASSERT_TRUE(sender->Send(1, key, TestValues(micro_batch), soon).ok());
    std::vector<float> values(kTestElements);
    const absl::Status status = receiver->Receive(0, key, absl::MakeSpan(values), soon);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(values, TestValues(micro_batch));
  }
  EXPECT_TRUE(sender->Flush(soon).ok());
  EXPECT_GE(receiver->counters().corrupt_dropped, 5u);
  EXPECT_GE(sender->counters().frames_resent, 5u);
  EXPECT_EQ(receiver->counters().frames_received, 20u);
}

INSTANTIATE_TEST_SUITE_P(All, ExchangeFaults, ::testing::Values(1, 4));

// Runs `wait` on its own thread and moves the clock on until it returns.
absl::Status WaitOnFakeClock(FakeClock& clock, const std::function<absl::Status()>& wait) {
  std::atomic<bool> done = false;
  absl::Status status;
  std::thread waiter([&] {
    status = wait();
    done = true;
  });
  while (!done) {
    clock.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  waiter.join();
  return status;
}

TEST(ExchangeDeadlines, ReceiveSaysWhoWaitedForWhatAndHowTheLinkIs) {
  FakeClock clock;
  InProcessNetwork network(clock);
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  const std::unique_ptr<Exchange> exchange = MakeTestExchange(TestOptions(1), *transport, clock);
  absl::Status status;
  // The clock may be moved past the deadline before the link's thread has dialled at all.
  do {
    status = WaitOnFakeClock(clock, [&] {
      std::vector<float> values(kTestElements);
      return exchange->Receive(0, TestKey(FrameKind::kActivation, 3, 1, 17), absl::MakeSpan(values),
                               clock.Now() + absl::Seconds(60));
    });
  } while (!absl::StrContains(status.message(), "reconnecting"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex("stage 1 waited [0-9.]+ s for activation of step 17 micro-batch 3 from "
                   "stage 0 \\(a at 10.0.0.1:7000\\): nothing of it arrived; link from it not "
                   "connected since [0-9.]+ s; link to it reconnecting since [0-9.]+ s: "
                   "UNAVAILABLE: cannot reach a at 10.0.0.1:7000: nothing listens there"));
}

TEST(ExchangeDeadlines, SendAndFlushSayWhatIsNotConsumed) {
  FakeClock clock;
  TwoStages stages(TestOptions(0).links[0], clock);
  stages.Start();
  for (const uint32_t micro_batch : {3, 4}) {
    ASSERT_TRUE(stages.stage(0)
                    .Send(1, TestKey(FrameKind::kActivation, micro_batch, 1, 17),
                          TestValues(micro_batch), absl::InfiniteFuture())
                    .ok());
  }
  while (stages.stage(1).counters().frames_received < 2) {
    clock.Advance(absl::Milliseconds(1));  // past the pauses before reconnections
    std::this_thread::yield();
  }
  const absl::Status sent = WaitOnFakeClock(clock, [&] {
    return stages.stage(0).Send(1, TestKey(FrameKind::kActivation, 5, 1, 17), TestValues(5),
                                clock.Now() + absl::Seconds(60));
  });
  EXPECT_EQ(sent.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(sent.message()),
      MatchesRegex("stage 0 waited [0-9.]+ s to send the activation of step 17 micro-batch "
                   "5 to stage 1 \\(b at 10.0.0.2:7000\\): it has not consumed 2 frames, "
                   "the first the activation of step 17 micro-batch 3, and the window of "
                   "activation frames is 2; link connected since [0-9.]+ s, not heard yet"));
  const absl::Status flushed =
      WaitOnFakeClock(clock, [&] { return stages.stage(0).Flush(clock.Now() + absl::Seconds(5)); });
  EXPECT_EQ(flushed.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(flushed.message()),
              HasSubstr("for stage 1 (b at 10.0.0.2:7000) to consume 2 frames, the first the "
                        "activation of step 17 micro-batch 3; link connected since"));
}

TEST(ExchangeLifetime, DestructionDoesNotWaitForAPeerThatCannotBeReached) {
  FakeClock clock;  // Stands still: a wait for time would never end.
  InProcessNetwork network(clock);
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  const std::unique_ptr<Exchange> exchange = MakeTestExchange(TestOptions(0), *transport, clock);
  EXPECT_TRUE(exchange
                  ->Send(1, TestKey(FrameKind::kActivation, 0, 1), TestValues(0),
                         clock.Now() + absl::Seconds(1))
                  .ok());
}

// Accepts streams and never answers.
class Silent : public StreamAcceptor {
 public:
  absl::Status Serve(ServerStream& stream) override {
    while (true) {
      const absl::StatusOr<StreamMessage> message = stream.Read();
      if (!message.ok()) return message.status();
    }
  }
};

TEST(ExchangeLifetime, APeerThatNeverAnswersTheHelloIsGivenUpAndNamed) {
  FakeClock clock;
  Silent silent;  // outlives the network, whose threads are in it
  InProcessNetwork network(clock);
  network.Listen(TestAddress(1), &silent);
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  const std::unique_ptr<Exchange> exchange = MakeTestExchange(TestOptions(0), *transport, clock);
  ASSERT_TRUE(
      exchange
          ->Send(1, TestKey(FrameKind::kActivation, 0, 1), TestValues(0), absl::InfiniteFuture())
          .ok());
  absl::Status status;
  do {
    status =
        WaitOnFakeClock(clock, [&] { return exchange->Flush(clock.Now() + absl::Seconds(20)); });
    ASSERT_FALSE(status.ok());
  } while (!absl::StrContains(status.message(), "no answer to the hello within 10 s"));
}

}  // namespace
}  // namespace longhaul::worker
