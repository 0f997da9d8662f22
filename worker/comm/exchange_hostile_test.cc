// A peer that says what no exchange of ours would: written directly on streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/match.h"
#include "compression/frame.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using compression::FrameHeader;
using compression::kFrameHeaderBytes;
using ::testing::HasSubstr;

StreamHello Hello() {
  StreamHello hello;
  hello.run = "first";
  hello.epoch = kTestEpoch;
  hello.token = "secret";
  hello.from_group = 0;
  hello.to_group = 1;
  return hello;
}

FrameHeader Header(const FrameKey& key, uint64_t elements) {
  FrameHeader header;
  header.key = key;
  header.run_hash = compression::RunHash("first");
  header.elements = elements;
  header.payload_bytes = 4 * elements;
  return header;
}

std::string Frame(const FrameHeader& header) {
  const std::string payload(header.payload_bytes, '\0');
  std::string frame(kFrameHeaderBytes, '\0');
  compression::WriteFrameHeader(header, payload, frame.data());
  return frame + payload;
}

std::string Activation(uint32_t micro_batch, uint64_t elements = kTestElements) {
  return Frame(Header(TestKey(FrameKind::kActivation, micro_batch, 1), elements));
}

// Stage 1 is real and at its address; the test is stage 0.
class ExchangeHostile : public ::testing::Test {
 protected:
  ExchangeHostile() : network_(RealClock()), transport_(network_.MakeTransport()) {
    exchange_ = MakeTestExchange(TestOptions(1), *transport_, RealClock());
    door_ =
        std::make_unique<Door>(network_, TestAddress(1), TestOptions(1), *exchange_, RealClock());
  }

  static absl::Time Soon() { return RealClock().Now() + absl::Seconds(30); }

  std::unique_ptr<ClientStream> Dial() { return *transport_->Dial("b", TestAddress(1), Soon()); }
  std::unique_ptr<ClientStream> DialWithHello(const StreamHello& hello) {
    std::unique_ptr<ClientStream> stream = Dial();
    EXPECT_TRUE(stream->Write(hello).ok());
    return stream;
  }
  // A stream whose welcome was read.
  std::unique_ptr<ClientStream> Connect(StreamWelcome* welcome = nullptr) {
    std::unique_ptr<ClientStream> stream = DialWithHello(Hello());
    const absl::StatusOr<StreamReply> reply = stream->Read();
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (reply.ok() && welcome != nullptr) *welcome = std::get<StreamWelcome>(*reply);
    return stream;
  }
  // How the peer ends the stream.
  static absl::Status End(ClientStream& stream) {
    while (true) {
      const absl::StatusOr<StreamReply> reply = stream.Read();
      if (!reply.ok()) return reply.status();
    }
  }
  static void WriteFrame(ClientStream& stream, uint64_t sequence, const std::string& frame) {
    for (uint64_t offset = 0; offset < frame.size(); offset += 128) {
      if (!stream.Write(FrameChunk{sequence, offset, frame.size(), frame.substr(offset, 128)})
               .ok()) {
        return;
      }
    }
  }
  // How the stream ends after one chunk.
  absl::Status EndAfter(const FrameChunk& chunk) {
    const std::unique_ptr<ClientStream> stream = Connect();
    EXPECT_TRUE(stream->Write(chunk).ok());
    return End(*stream);
  }
  absl::Status Receive(uint32_t micro_batch) {
    std::vector<float> values(kTestElements);
    return exchange_->Receive(0, TestKey(FrameKind::kActivation, micro_batch, 1),
                              absl::MakeSpan(values), Soon());
  }

  InProcessNetwork network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Door> door_;
};

TEST_F(ExchangeHostile, AHelloThatIsNotOfThePlanIsRefused) {
  const auto code = [&](auto change) {
    StreamHello hello = Hello();
    change(hello);
    return End(*DialWithHello(hello)).code();
  };
  const auto denied = absl::StatusCode::kPermissionDenied;
  EXPECT_EQ(code([](StreamHello& h) { h.token = "secreu"; }), denied);
  EXPECT_EQ(code([](StreamHello& h) { h.token = "secretsecret"; }), denied);
  EXPECT_EQ(code([](StreamHello& h) { h.token = "sec"; }), denied);
  EXPECT_EQ(code([](StreamHello& h) { h.token = ""; }), denied);
  EXPECT_EQ(code([](StreamHello& h) { h.run = "second"; }), absl::StatusCode::kUnavailable);
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](StreamHello& h) { h.from_group = 1; }), invalid);
  EXPECT_EQ(code([](StreamHello& h) { h.to_group = 2; }), invalid);
  EXPECT_EQ(code([](StreamHello& h) { h.connection = 1; }), invalid);
  EXPECT_EQ(code([](StreamHello& h) { h.connection = -1; }), invalid);
  EXPECT_EQ(door_->router().stale_epochs_refused(), 0u);
}

TEST_F(ExchangeHostile, AnOldEpochIsRefusedAndCounted) {
  StreamHello hello = Hello();
  hello.epoch.number -= 1;
  const absl::Status status = End(*DialWithHello(hello));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("epoch 1.3 of run first has ended"));
  EXPECT_EQ(door_->router().stale_epochs_refused(), 1u);
}

TEST_F(ExchangeHostile, AFrameOfAnOldEpochIsDroppedCountedAndForgotten) {
  const std::unique_ptr<ClientStream> stream = Connect();
  FrameKey old = TestKey(FrameKind::kActivation, 0, 1);
  old.epoch.number -= 1;
  WriteFrame(*stream, 0, Frame(Header(old, kTestElements)));
  const absl::StatusOr<StreamReply> reply = stream->Read();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(std::get<FrameConsumed>(*reply).sequence, 0u);
  EXPECT_EQ(exchange_->counters().stale_epochs_dropped, 1u);
  EXPECT_EQ(exchange_->counters().frames_received, 0u);
}

TEST_F(ExchangeHostile, AStreamBeginsWithOneHello) {
  const std::unique_ptr<ClientStream> stream = Dial();
  ASSERT_TRUE(stream->Write(FrameChunk{0, 0, 96, std::string(96, 'x')}).ok());
  EXPECT_EQ(End(*stream).code(), absl::StatusCode::kInvalidArgument);
  const std::unique_ptr<ClientStream> twice = Connect();
  ASSERT_TRUE(twice->Write(Hello()).ok());
  EXPECT_EQ(End(*twice).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeHostile, HostileSizesAndOffsetsBreakTheStreamOnly) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  const uint64_t frame_bytes = kFrameHeaderBytes + 4 * kTestElements;
  const std::string bytes(128, 'x');
  const FrameChunk hostile[] = {
      {0, 128, kHuge, bytes},
      {0, 128, uint64_t{1} << 63, bytes},
      {0, 128, kFrameHeaderBytes + 64 * 8 + 1, bytes},
      {0, 0, kFrameHeaderBytes - 1, bytes},
      {0, 0, 0, ""},
      {0, kHuge - 127, frame_bytes, bytes},
      {0, frame_bytes, frame_bytes, bytes},
      {0, 127, frame_bytes, bytes},
      {0, 128, frame_bytes, ""},
      {0, 128, frame_bytes, bytes + "x"},
      {0, 384, frame_bytes, bytes},
      {uint64_t{1} << 16, 128, frame_bytes, bytes},
      {kHuge, 128, frame_bytes, bytes},
  };
  for (const FrameChunk& chunk : hostile) {
    const absl::Status status = EndAfter(chunk);
    EXPECT_EQ(absl::IsInvalidArgument(status) || absl::IsDataLoss(status), true)
        << chunk.sequence << " " << chunk.offset << " " << chunk.frame_bytes << ": " << status;
  }
  const std::unique_ptr<ClientStream> stream = Connect();
  WriteFrame(*stream, 0, Activation(0));
  EXPECT_TRUE(Receive(0).ok());
}

TEST_F(ExchangeHostile, AFrameThatChangesItsSizeBreaksTheStream) {
  const std::unique_ptr<ClientStream> stream = Connect();
  ASSERT_TRUE(stream->Write(FrameChunk{0, 128, 300, std::string(128, 'x')}).ok());
  ASSERT_TRUE(stream->Write(FrameChunk{0, 128, 301, std::string(128, 'x')}).ok());
  const absl::Status status = End(*stream);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("first of 300, now of 301 bytes"));
}

TEST_F(ExchangeHostile, IncompleteFramesAreBounded) {
  const std::unique_ptr<ClientStream> stream = Connect();
  // Four kinds come down this link, two frames of each at most.
  for (uint64_t sequence = 0; sequence < 9; ++sequence) {
    (void)stream->Write(FrameChunk{sequence, 128, 400, std::string(128, 'x')});
  }
  const absl::Status status = End(*stream);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("8 other frames are incomplete"));
}

TEST_F(ExchangeHostile, MoreFramesThanTheWindowBreakTheStream) {
  const std::unique_ptr<ClientStream> stream = Connect();
  for (uint32_t i = 0; i < 3; ++i) WriteFrame(*stream, i, Activation(i));
  const absl::Status status = End(*stream);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("window is 2"));
  EXPECT_TRUE(Receive(0).ok());
  EXPECT_TRUE(Receive(1).ok());
}

TEST_F(ExchangeHostile, FramesThatThePlanDoesNotHaveAreRefused) {
  const auto end = [&](auto change) {
    FrameHeader header = Header(TestKey(FrameKind::kActivation, 0, 1), kTestElements);
    change(header);
    const std::unique_ptr<ClientStream> stream = Connect();
    WriteFrame(*stream, 0, Frame(header));
    return End(*stream).code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(end([](FrameHeader& h) { h.key.kind = FrameKind::kGradient; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.key.kind = FrameKind{99}; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.key.kind = FrameKind::kTiedSum; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.key.stage = 2; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.key.epoch.number += 1; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.run_hash ^= 1; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) { h.codec = 3; }), invalid);
  EXPECT_EQ(end([](FrameHeader& h) {
              h.elements = h.payload_bytes = 101;
              h.payload_bytes = 404;
            }),
            invalid);
  EXPECT_EQ(end([](FrameHeader& h) {
              h.element = compression::ElementType::kFloat64;
              h.elements = 50;
            }),
            invalid);
  EXPECT_EQ(exchange_->counters().frames_received, 0u);
  EXPECT_EQ(exchange_->counters().corrupt_dropped, 9u);
}

TEST_F(ExchangeHostile, ACorruptFrameIsCountedAndTakenWhenSentAgain) {
  const std::string good = Activation(0);
  for (const size_t at : {size_t{10}, kFrameHeaderBytes + 5, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    const std::unique_ptr<ClientStream> stream = Connect();
    WriteFrame(*stream, 0, bad);
    const absl::Status status = End(*stream);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("stage 0 (a at 10.0.0.1:7000)"));
  }
  EXPECT_EQ(exchange_->counters().corrupt_dropped, 3u);
  StreamWelcome welcome;
  const std::unique_ptr<ClientStream> stream = Connect(&welcome);
  EXPECT_EQ(welcome.next_sequence, 0u);
  WriteFrame(*stream, 0, good);
  EXPECT_TRUE(Receive(0).ok());
}

TEST_F(ExchangeHostile, DuplicatesAreDroppedAndCounted) {
  const std::unique_ptr<ClientStream> stream = Connect();
  WriteFrame(*stream, 0, Activation(0));
  ASSERT_TRUE(Receive(0).ok());
  WriteFrame(*stream, 0, Activation(0));
  // The same key under another number, before and after the first is here.
  WriteFrame(*stream, 1, Activation(1));
  WriteFrame(*stream, 2, Activation(1));
  std::vector<uint64_t> consumed;
  while (consumed.size() < 2) {
    const absl::StatusOr<StreamReply> reply = stream->Read();
    ASSERT_TRUE(reply.ok()) << reply.status();
    consumed.push_back(std::get<FrameConsumed>(*reply).sequence);
  }
  EXPECT_EQ(consumed, (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(exchange_->counters().frames_received, 2u);
  EXPECT_EQ(exchange_->counters().duplicates_dropped, 5u);  // four chunks and a frame
}

TEST_F(ExchangeHostile, TheWelcomeTellsWhatArrivedAndWhatWasConsumed) {
  std::unique_ptr<ClientStream> stream = Connect();
  WriteFrame(*stream, 0, Activation(0));
  ASSERT_TRUE(Receive(0).ok());
  WriteFrame(*stream, 1, Activation(1));
  WriteFrame(*stream, 3, Activation(3));
  ASSERT_TRUE(Receive(3).ok());
  StreamWelcome welcome;
  stream = Connect(&welcome);
  EXPECT_EQ(welcome.next_sequence, 2u);
  EXPECT_EQ(welcome.consumed_before, 1u);
  const absl::StatusOr<StreamReply> reply = stream->Read();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(std::get<FrameConsumed>(*reply).sequence, 3u);
}

// A receiver that answers hellos with what the test says.
class Liar : public StreamAcceptor {
 public:
  explicit Liar(std::vector<StreamReply> replies) : replies_(std::move(replies)) {}
  absl::Status Serve(ServerStream& stream) override {
    for (const StreamReply& reply : replies_) {
      if (!stream.Write(reply).ok()) break;
    }
    while (true) {
      const absl::StatusOr<StreamMessage> message = stream.Read();
      if (!message.ok()) return message.status();
    }
  }

 private:
  const std::vector<StreamReply> replies_;
};

TEST(ExchangeLiar, ImpossibleRepliesBreakTheStreamAndAreNamed) {
  const std::pair<std::vector<StreamReply>, std::string> cases[] = {
      {{StreamWelcome{5, 0}}, "it has talked to another sender of this epoch"},
      {{StreamWelcome{0, 1}}, "it has talked to another sender of this epoch"},
      {{StreamWelcome{}, FrameConsumed{7}}, "it consumed frame 7, but only 1 were sent"},
      {{FrameConsumed{0}}, "without a welcome"},
      {{StreamWelcome{}, StreamWelcome{}}, "welcomed one stream twice"},
      {{StreamWelcome{}, FrameConsumed{0}, StreamWelcome{}}, ""},
  };
  for (const auto& [replies, expected] : cases) {
    Liar liar(replies);  // outlives the network, whose threads are in it
    InProcessNetwork network(RealClock());
    const std::unique_ptr<Transport> transport = network.MakeTransport();
    const std::unique_ptr<Exchange> exchange =
        MakeTestExchange(TestOptions(0), *transport, RealClock());
    ASSERT_TRUE(
        exchange
            ->Send(1, TestKey(FrameKind::kActivation, 0, 1), TestValues(0), absl::InfiniteFuture())
            .ok());
    network.Listen(TestAddress(1), &liar);
    // An empty expectation is the one honest liar: the frame is consumed.
    absl::Status status;
    do {
      status = exchange->Flush(RealClock().Now() + absl::Milliseconds(20));
    } while (!status.ok() && (expected.empty() || !absl::StrContains(status.message(), expected)));
    EXPECT_EQ(status.ok(), expected.empty()) << status;
  }
}

TEST(ExchangeLiar, APeerThatForgotWhatItConsumedIsNamed) {
  Liar consumes({StreamWelcome{0, 0}, FrameConsumed{0}});
  Liar forgets({StreamWelcome{0, 0}});
  InProcessNetwork network(RealClock());
  const std::unique_ptr<Transport> transport = network.MakeTransport();
  const std::unique_ptr<Exchange> exchange =
      MakeTestExchange(TestOptions(0), *transport, RealClock());
  const auto send = [&](uint32_t micro_batch) {
    return exchange->Send(1, TestKey(FrameKind::kActivation, micro_batch, 1),
                          TestValues(micro_batch), absl::InfiniteFuture());
  };
  ASSERT_TRUE(send(0).ok());
  network.Listen(TestAddress(1), &consumes);
  ASSERT_TRUE(exchange->Flush(RealClock().Now() + absl::Seconds(30)).ok());
  network.Stop(TestAddress(1));
  network.Listen(TestAddress(1), &forgets);
  ASSERT_TRUE(send(1).ok());
  absl::Status status;
  do {
    status = exchange->Flush(RealClock().Now() + absl::Milliseconds(20));
    ASSERT_FALSE(status.ok());
  } while (!absl::StrContains(status.message(), "it was restarted within this epoch"));
}

}  // namespace
}  // namespace longhaul::worker
