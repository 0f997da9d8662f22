#include "daemon/rpc/grpc_transport.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/rpc/convert_exchange.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"
#include "longhaul/v1/exchange.grpc.pb.h"

namespace longhaul::daemon {
namespace {

class GrpcClientStream : public worker::ClientStream {
 public:
  // The stream lives for `life_max` at most.
  GrpcClientStream(std::string peer, const std::shared_ptr<grpc::Channel>& channel,
                   const Credentials& credentials, ExchangeStreamCounters& counters,
                   absl::Duration life_max)
      : peer_(std::move(peer)), counters_(counters), stub_(v1::Exchange::NewStub(channel)) {
    credentials.Sign(context_);
    if (life_max != absl::InfiniteDuration()) EndAfter(context_, life_max);
    stream_ = stub_->Stream(&context_);
  }

  ~GrpcClientStream() override {
    context_.TryCancel();
    End().IgnoreError();
  }

  absl::Status Write(const worker::StreamMessage& message) override {
    if (!stream_->Write(ToWire(message))) return End();
    if (const auto* chunk = std::get_if<worker::FrameChunk>(&message)) {
      counters_.chunks_sent.fetch_add(1, std::memory_order_relaxed);
      counters_.bytes_sent.fetch_add(chunk->bytes.size(), std::memory_order_relaxed);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<worker::StreamReply> Read() override {
    v1::StreamReply wire;
    if (!stream_->Read(&wire)) return End();
    return FromWire(wire);
  }

  void Cancel() override { context_.TryCancel(); }

  // The status of a stream that is over; waits for its end.
  absl::Status End() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!end_) {
      const absl::Status status = FromGrpc(stream_->Finish(), peer_);
      end_ = status.ok()
                 ? absl::UnavailableError(absl::StrCat(peer_, ": the peer ended the stream"))
                 : status;
    }
    return *end_;
  }

 private:
  const std::string peer_;
  ExchangeStreamCounters& counters_;
  std::unique_ptr<v1::Exchange::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamMessage, v1::StreamReply>> stream_;
  std::mutex mutex_;
  std::optional<absl::Status> end_;  // guarded by mutex_
};

// Waits until the connection stands or has failed once; false when the time is over.
bool WaitForAttempt(grpc::Channel& channel, absl::Duration duration_max) {
  const gpr_timespec deadline =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(absl::ToInt64Milliseconds(duration_max), GPR_TIMESPAN));
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) return true;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<worker::ClientStream>> GrpcTransport::Dial(
    const std::string& node, const std::string& address, absl::Time deadline) {
  const std::string peer = absl::StrCat("node ", node, " at ", address);
  const std::shared_ptr<grpc::Channel> channel = OpenChannel(address, node, credentials_);
  const absl::Duration left = std::max(deadline - clock_.Now(), absl::ZeroDuration());
  if (!WaitForAttempt(*channel, std::min(left, absl::Hours(1)))) {
    counters_.dials_failed.fetch_add(1, std::memory_order_relaxed);
    return absl::DeadlineExceededError(
        absl::StrCat(peer, ": no connection within ", absl::FormatDuration(left)));
  }
  const bool failed = channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE;
  auto stream = std::make_unique<GrpcClientStream>(
      peer, channel, credentials_, counters_, failed ? absl::Seconds(1) : absl::InfiniteDuration());
  if (failed) {
    // The call fails at once, and its status says why.
    counters_.dials_failed.fetch_add(1, std::memory_order_relaxed);
    return stream->End();
  }
  counters_.streams_dialled.fetch_add(1, std::memory_order_relaxed);
  return stream;
}

}  // namespace longhaul::daemon
