#include "worker/comm/testing/in_process_transport.h"

#include <gtest/gtest.h>

#include <variant>

namespace longhaul::worker {
namespace {

// Answers every chunk with its sequence number, and ends with NotFound at a hello.
class Echo : public StreamAcceptor {
 public:
  absl::Status Serve(ServerStream& stream) override {
    while (true) {
      const absl::StatusOr<StreamMessage> message = stream.Read();
      if (!message.ok()) return message.status();
      const auto* const chunk = std::get_if<FrameChunk>(&*message);
      if (chunk == nullptr) return absl::NotFoundError("hello");
      const absl::Status status = stream.Write(FrameConsumed{chunk->sequence});
      if (!status.ok()) return status;
    }
  }
};

class InProcessTransportTest : public ::testing::Test {
 protected:
  InProcessTransportTest() : network_(clock_), transport_(network_.MakeTransport()) {
    network_.Listen("host", &echo_);
  }
  absl::StatusOr<std::unique_ptr<ClientStream>> Dial() {
    return transport_->Dial("node", "host", clock_.Now() + absl::Seconds(1));
  }
  static absl::Status RoundTrip(ClientStream& stream, uint64_t sequence) {
    const absl::Status written = stream.Write(FrameChunk{sequence, 0, 1, "x"});
    if (!written.ok()) return written;
    const absl::StatusOr<StreamReply> reply = stream.Read();
    if (!reply.ok()) return reply.status();
    EXPECT_EQ(std::get<FrameConsumed>(*reply).sequence, sequence);
    return absl::OkStatus();
  }

  FakeClock clock_;
  Echo echo_;
  InProcessNetwork network_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(InProcessTransportTest, MessagesAndRepliesArriveInOrderUntilTheServerEnds) {
  const std::unique_ptr<ClientStream> stream = *Dial();
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(RoundTrip(*stream, i).ok());
  ASSERT_TRUE(stream->Write(FrameChunk{7, 0, 1, "x"}).ok());
  ASSERT_TRUE(stream->Write(StreamHello{}).ok());
  EXPECT_TRUE(stream->Read().ok());
  EXPECT_EQ(stream->Read().status(), absl::NotFoundError("hello"));
  EXPECT_EQ(stream->Write(StreamHello{}), absl::NotFoundError("hello"));
}

TEST_F(InProcessTransportTest, CancelEndsTheStream) {
  const std::unique_ptr<ClientStream> stream = *Dial();
  stream->Cancel();
  EXPECT_EQ(stream->Read().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(RoundTrip(*stream, 0).code(), absl::StatusCode::kCancelled);
}

TEST_F(InProcessTransportTest, DiallingNamesTheNodeAndTheReason) {
  const absl::Status unknown =
      transport_->Dial("node", "elsewhere", absl::InfiniteFuture()).status();
  EXPECT_EQ(unknown,
            absl::UnavailableError("cannot reach node at elsewhere: nothing listens there"));
  EXPECT_EQ(transport_->Dial("node", "host", clock_.Now()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(InProcessTransportTest, BreakEndsOpenStreamsOnly) {
  const std::unique_ptr<ClientStream> stream = *Dial();
  ASSERT_TRUE(RoundTrip(*stream, 0).ok());
  network_.Break("host");
  EXPECT_EQ(RoundTrip(*stream, 1).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RoundTrip(**Dial(), 2).ok());
}

TEST_F(InProcessTransportTest, BreakAfterCountsBothDirectionsOfTheNextStreamOnly) {
  network_.BreakAfter("host", 3);
  const std::unique_ptr<ClientStream> stream = *Dial();
  EXPECT_TRUE(RoundTrip(*stream, 0).ok());
  EXPECT_EQ(RoundTrip(*stream, 1).code(), absl::StatusCode::kUnavailable);
  const std::unique_ptr<ClientStream> next = *Dial();
  for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(RoundTrip(*next, i).ok());
}

TEST_F(InProcessTransportTest, APartitionRefusesUntilItHeals) {
  const std::unique_ptr<ClientStream> stream = *Dial();
  network_.Partition("host", true);
  EXPECT_EQ(RoundTrip(*stream, 0).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Dial().status().code(), absl::StatusCode::kUnavailable);
  network_.Partition("host", false);
  EXPECT_TRUE(RoundTrip(**Dial(), 0).ok());
}

TEST_F(InProcessTransportTest, StopEndsStreamsAndRefusesNewOnes) {
  const std::unique_ptr<ClientStream> stream = *Dial();
  network_.Stop("host");
  EXPECT_EQ(stream->Read().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Dial().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace longhaul::worker
