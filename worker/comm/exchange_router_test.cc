#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

// Remembers hellos and holds every stream until it breaks.
class Holder : public StreamAcceptor {
 public:
  absl::Status Serve(ServerStream& stream) override {
    const absl::StatusOr<StreamMessage> hello = stream.Read();
    if (!hello.ok()) return hello.status();
    stream.Write(StreamWelcome{std::get<StreamHello>(*hello).connection + uint64_t{100}, 0})
        .IgnoreError();
    return stream.Read().status();
  }
};

class ExchangeRouterTest : public ::testing::Test {
 protected:
  ExchangeRouterTest() : router_(clock_), network_(clock_), transport_(network_.MakeTransport()) {
    network_.Listen("host", &router_);
  }

  std::unique_ptr<ClientStream> Dial(const StreamHello& hello) {
    std::unique_ptr<ClientStream> stream = *transport_->Dial("b", "host", absl::InfiniteFuture());
    stream->Write(hello).IgnoreError();  // A refusal may be faster; Read tells it.
    return stream;
  }
  static StreamHello Hello(const Epoch& epoch, const std::string& token) {
    StreamHello hello;
    hello.run = "first";
    hello.epoch = epoch;
    hello.token = token;
    hello.connection = 7;
    return hello;
  }
  absl::StatusCode Answer(const Epoch& epoch, const std::string& token) {
    return Dial(Hello(epoch, token))->Read().status().code();
  }

  FakeClock clock_;
  Holder holder_;
  ExchangeRouter router_;
  InProcessNetwork network_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(ExchangeRouterTest, AStreamGoesWholeToTheExchangeOfItsRunAndEpoch) {
  EXPECT_EQ(Answer({1, 2}, "t"), absl::StatusCode::kUnavailable);
  router_.Register("first", {1, 2}, "t", &holder_);
  const std::unique_ptr<ClientStream> stream = Dial(Hello({1, 2}, "t"));
  const absl::StatusOr<StreamReply> reply = stream->Read();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(std::get<StreamWelcome>(*reply).next_sequence, 107u);
  router_.Unregister("first", {1, 2});
  EXPECT_FALSE(stream->Read().ok());
  EXPECT_EQ(Answer({1, 2}, "t"), absl::StatusCode::kUnavailable);
}

TEST_F(ExchangeRouterTest, OldEpochsAndWrongTokensAreRefused) {
  router_.Register("first", {1, 2}, "t", &holder_);
  EXPECT_EQ(Answer({1, 2}, "u"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Answer({1, 2}, ""), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(router_.stale_epochs_refused(), 0u);
  EXPECT_EQ(Answer({1, 1}, "t"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Answer({0, 9}, "t"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(router_.stale_epochs_refused(), 2u);
  // The peer was told the new plan first: it tries again.
  EXPECT_EQ(Answer({1, 3}, "t"), absl::StatusCode::kUnavailable);
  router_.Unregister("first", {1, 2});
}

TEST_F(ExchangeRouterTest, ANewEpochEndsTheStreamsOfTheOldOne) {
  router_.Register("first", {1, 2}, "t", &holder_);
  const std::unique_ptr<ClientStream> old = Dial(Hello({1, 2}, "t"));
  ASSERT_TRUE(old->Read().ok());
  router_.Register("first", {1, 3}, "u", &holder_);
  EXPECT_FALSE(old->Read().ok());
  EXPECT_EQ(Answer({1, 2}, "t"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Answer({1, 3}, "u"), absl::StatusCode::kOk);
  router_.Unregister("first", {1, 2});
  EXPECT_EQ(Answer({1, 3}, "u"), absl::StatusCode::kOk);
  router_.Unregister("first", {1, 3});
}

TEST_F(ExchangeRouterTest, StreamsThatSayNoHelloAreBoundedAndGiveWayInTime) {
  std::vector<std::unique_ptr<ClientStream>> mute;
  absl::Status status;
  // The 65th stream or, if a thread is late, one a little after it.
  while (status.code() != absl::StatusCode::kResourceExhausted) {
    mute.push_back(*transport_->Dial("b", "host", absl::InfiniteFuture()));
    if (mute.size() > 64) {
      const std::unique_ptr<ClientStream> stream = Dial(Hello({1, 2}, "t"));
      status = stream->Read().status();
    }
    ASSERT_LT(mute.size(), 1000u);
  }
  clock_.Advance(absl::Seconds(11));
  while (status.code() == absl::StatusCode::kResourceExhausted) {
    status = Dial(Hello({1, 2}, "t"))->Read().status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_F(ExchangeRouterTest, TwoStagesTrainThroughRouters) {
  ExchangeRouter routers[] = {ExchangeRouter(RealClock()), ExchangeRouter(RealClock())};
  InProcessNetwork network(RealClock());
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  std::unique_ptr<Exchange> stages[2];
  const absl::Cleanup unregister = [&] {
    for (ExchangeRouter& router : routers) router.Unregister("first", kTestEpoch);
  };
  for (int i = 0; i < 2; ++i) {
    network.Listen(TestAddress(i), &routers[i]);
    stages[i] = MakeTestExchange(TestOptions(i), *transport, RealClock());
    routers[i].Register("first", kTestEpoch, "secret", stages[i].get());
  }
  const absl::Time soon = RealClock().Now() + absl::Seconds(30);
  const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
  ASSERT_TRUE(stages[0]->Send(1, key, TestValues(0), soon).ok());
  std::vector<float> values(kTestElements);
  ASSERT_TRUE(stages[1]->Receive(0, key, absl::MakeSpan(values), soon).ok());
  EXPECT_EQ(values, TestValues(0));
  EXPECT_TRUE(stages[0]->Flush(soon).ok());
}

}  // namespace
}  // namespace longhaul::worker
