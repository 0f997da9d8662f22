#include "daemon/rpc/silence_watch.h"

#include <memory>
#include <string>
#include <thread>

#include "base/sha256.h"
#include "daemon/rpc/credentials.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/shard_transfer.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

// Sends three pieces of a shard, and then nothing until the call is cancelled.
class StuckStorage final : public v1::Storage::Service {
 public:
  grpc::Status FetchShard(grpc::ServerContext* context, const v1::FetchShardRequest*,
                          grpc::ServerWriter<v1::ShardPiece>* writer) override {
    v1::ShardPiece piece;
    piece.set_data("abc");
    for (int i = 0; i < 3; ++i) writer->Write(piece);
    const absl::Time deadline = RealClock().Now() + absl::Seconds(20);
    while (!context->IsCancelled() && RealClock().Now() < deadline) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  }
};

TEST(SilenceWatch, EndsATransferThatStandsStillAndNoOther) {
  const auto credentials = Credentials::FromToken("0123456789abcdef");
  StuckStorage storage;
  auto listening = ListeningServer::Listen({"127.0.0.1", 0}, *credentials, {&storage}, 16);
  ASSERT_TRUE(listening.ok()) << listening.status();
  const auto stub =
      v1::Storage::NewStub(OpenChannel(ToString((*listening)->address()), "hub", *credentials));
  FakeClock clock;
  grpc::ClientContext call;
  SilenceWatch watch([&call] { call.TryCancel(); }, absl::Minutes(5), clock);
  int pieces = 0;
  // Twelve minutes in all, of which the last five are silent.
  const ShardBytes shard = ReadShard(*stub, call, Sha256Hex(""), 100, [&] {
    clock.Advance(absl::Minutes(4));
    watch.Moved();
    EXPECT_FALSE(watch.cancelled());
    if (++pieces == 3) clock.Advance(absl::Minutes(5));
  });
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(shard.bytes, "abcabcabc");
  EXPECT_EQ(shard.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(watch.cancelled());
}

}  // namespace
}  // namespace longhaul::daemon
