#include "worker/comm/exchange_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <variant>
#include <vector>

#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

// Says which hello it was given and holds every stream until it breaks.
class Holder : public StreamServer {
 public:
  absl::Status Serve(const StreamHello& hello, ServerStream& stream) override {
    stream.Write(StreamWelcome{hello.connection + uint64_t{100}, 0}).IgnoreError();
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

TEST_F(ExchangeRouterTest, AStreamGoesToTheExchangeOfItsRunAndEpoch) {
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

}  // namespace
}  // namespace longhaul::worker
