#include "daemon/rpc/exchange_server.h"

#include <string>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "daemon/rpc/convert_exchange.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {
namespace {

class GrpcServerStream : public worker::ServerStream {
 public:
  using Stream = grpc::ServerReaderWriter<v1::StreamReply, v1::StreamMessage>;

  GrpcServerStream(grpc::ServerContext& context, Stream& stream, ExchangeStreamCounters& counters)
      : context_(context), stream_(stream), counters_(counters), peer_(DescribePeer(context)) {}

  absl::StatusOr<worker::StreamMessage> Read() override {
    v1::StreamMessage wire;
    if (!stream_.Read(&wire)) return absl::UnavailableError("the peer ended the stream");
    LH_ASSIGN_OR_RETURN(worker::StreamMessage message, FromWire(std::move(wire)));
    if (const auto* chunk = std::get_if<worker::FrameChunk>(&message)) {
      counters_.chunks_received.fetch_add(1, std::memory_order_relaxed);
      counters_.bytes_received.fetch_add(chunk->bytes.size(), std::memory_order_relaxed);
    }
    return message;
  }

  absl::Status Write(const worker::StreamReply& reply) override {
    if (stream_.Write(ToWire(reply))) return absl::OkStatus();
    return absl::UnavailableError("the stream is broken");
  }

  void Cancel() override { context_.TryCancel(); }
  std::string peer() const override { return peer_; }

 private:
  grpc::ServerContext& context_;
  Stream& stream_;
  ExchangeStreamCounters& counters_;
  const std::string peer_;
};

}  // namespace

grpc::Status ExchangeServer::Stream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::StreamReply, v1::StreamMessage>* stream) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    counters_.streams_refused.fetch_add(1, std::memory_order_relaxed);
    return ToGrpc(known);
  }
  counters_.streams_accepted.fetch_add(1, std::memory_order_relaxed);
  GrpcServerStream server_stream(*context, *stream, counters_);
  return ToGrpc(acceptor_.Serve(server_stream));
}

}  // namespace longhaul::daemon
