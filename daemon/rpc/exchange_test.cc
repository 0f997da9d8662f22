// Streams of the exchange over real connections. What the exchange itself does with them is tested
// in worker/comm; here: order, content, and the end of a server.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/rpc/convert_exchange.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/exchange_server.h"
#include "daemon/rpc/grpc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// Welcomes with what it has, and says of each chunk that it was consumed.
class Receiver : public worker::StreamAcceptor {
 public:
  absl::Status Serve(worker::ServerStream& stream) override {
    const auto hello = stream.Read();
    if (!hello.ok()) return hello.status();
    if (!std::holds_alternative<worker::StreamHello>(*hello)) {
      return absl::InvalidArgumentError("no hello");
    }
    if (const absl::Status s = stream.Write(worker::StreamWelcome{chunks.size(), 0}); !s.ok()) {
      return s;
    }
    for (;;) {
      auto message = stream.Read();
      if (!message.ok()) return message.status();
      chunks.push_back(std::get<worker::FrameChunk>(*std::move(message)));
      const absl::Status s = stream.Write(worker::FrameConsumed{chunks.back().sequence});
      if (!s.ok()) return s;
    }
  }
  std::vector<worker::FrameChunk> chunks;  // of one stream at a time
};

class ExchangeRpcTest : public testing::Test {
 protected:
  ExchangeRpcTest() { Listen(0); }

  void Listen(int port) {
    server_ = std::make_unique<ExchangeServer>(receiver_, *credentials_, counters_);
    auto listening =
        ListeningServer::Listen({"127.0.0.1", port}, *credentials_, {server_.get()}, 16);
    ASSERT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    address_ = listening_->address();
  }
  void StopServer() {
    listening_.reset();
    server_.reset();
  }
  absl::StatusOr<std::unique_ptr<worker::ClientStream>> Dial() {
    return transport_.Dial("b1", ToString(address_), RealClock().Now() + absl::Seconds(20));
  }
  // Dials and greets; the next sequence that the receiver wants.
  std::pair<std::unique_ptr<worker::ClientStream>, uint64_t> Open() {
    auto stream = Dial();
    EXPECT_TRUE(stream.ok()) << stream.status();
    worker::StreamHello hello;
    hello.run = "first";
    EXPECT_TRUE((*stream)->Write(hello).ok());
    const auto welcome = (*stream)->Read();
    EXPECT_TRUE(welcome.ok()) << welcome.status();
    return {*std::move(stream), std::get<worker::StreamWelcome>(*welcome).next_sequence};
  }
  static worker::FrameChunk Chunk(uint64_t sequence) {
    return {sequence, 0, 300000, std::string(300000, static_cast<char>('a' + sequence % 26))};
  }

  const std::unique_ptr<Credentials> credentials_ = Credentials::FromToken("0123456789abcdef");
  ExchangeStreamCounters counters_;
  Receiver receiver_;
  std::unique_ptr<ExchangeServer> server_;
  std::unique_ptr<ListeningServer> listening_;
  Address address_;
  GrpcTransport transport_{*credentials_, RealClock(), counters_};
};

TEST_F(ExchangeRpcTest, ChunksArriveWholeAndInOrderAlsoAfterARestartOfTheServer) {
  for (const uint64_t upto : {20, 40}) {
    auto [stream, next] = Open();
    EXPECT_EQ(next, upto - 20);
    std::thread writer([&stream = *stream, next = next, upto] {
      for (uint64_t s = next; s < upto; ++s) EXPECT_TRUE(stream.Write(Chunk(s)).ok());
    });
    for (uint64_t s = next; s < upto; ++s) {
      const auto reply = stream->Read();
      EXPECT_TRUE(reply.ok()) << reply.status();
      if (!reply.ok()) break;
      EXPECT_EQ(std::get<worker::FrameConsumed>(*reply).sequence, s);
    }
    if (HasFailure()) StopServer();  // so that nobody writes for ever
    writer.join();
    StopServer();
    EXPECT_FALSE(stream->Read().ok());
    EXPECT_FALSE(Dial().ok());
    Listen(address_.port);
  }
  ASSERT_EQ(receiver_.chunks.size(), 40u);
  for (uint64_t s = 0; s < 40; ++s) {
    EXPECT_EQ(receiver_.chunks[s].sequence, s);
    EXPECT_EQ(receiver_.chunks[s].bytes, Chunk(s).bytes);
  }
  EXPECT_EQ(counters_.bytes_received.load(), 40u * 300000);
  EXPECT_EQ(counters_.bytes_sent.load(), 40u * 300000);
  EXPECT_EQ(counters_.dials_failed.load(), 2u);
}

TEST_F(ExchangeRpcTest, NobodyThereIsSaidWithNodeAndAddress) {
  StopServer();
  const absl::Status refused = Dial().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("node b1 at " + ToString(address_)));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Connection refused"));
}

TEST(ExchangeConversion, ASignOfLifeArrivesAsOneInBothDirections) {
  const auto message = FromWire(ToWire(worker::StreamMessage(worker::SignOfLife())));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(std::holds_alternative<worker::SignOfLife>(*message));
  const auto reply = FromWire(ToWire(worker::StreamReply(worker::SignOfLife())));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(std::holds_alternative<worker::SignOfLife>(*reply));
  EXPECT_FALSE(FromWire(v1::StreamMessage()).ok());
  EXPECT_FALSE(FromWire(v1::StreamReply()).ok());
}

TEST_F(ExchangeRpcTest, CancelEndsAReadThatWaits) {
  auto [stream, next] = Open();
  std::thread canceller([&stream = *stream] { stream.Cancel(); });
  EXPECT_EQ(stream->Read().status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(stream->Write(Chunk(0)).ok());
  canceller.join();
}

TEST_F(ExchangeRpcTest, AHostileChunkEndsTheStreamWithTheReason) {
  auto [stream, next] = Open();
  worker::FrameChunk chunk = Chunk(0);
  chunk.offset = 1;  // one byte beyond the frame
  ASSERT_TRUE(stream->Write(chunk).ok());
  const absl::Status end = stream->Read().status();
  EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(end.message()), HasSubstr("FrameChunk: data bytes"));
}

}  // namespace
}  // namespace longhaul::daemon
