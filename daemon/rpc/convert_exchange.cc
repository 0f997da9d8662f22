#include "daemon/rpc/convert_exchange.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "daemon/rpc/wire_check.h"

namespace longhaul::daemon {
namespace {

constexpr uint64_t kConnectionsMax = 1024;

absl::StatusOr<worker::StreamMessage> ReadHello(const v1::StreamHello& wire) {
  WireCheck check("StreamHello");
  worker::StreamHello hello;
  hello.run = check.Run(wire.run());
  hello.epoch = FromWire(wire.epoch());
  hello.token = check.Text("token", wire.token());
  hello.from_group = check.Stage(wire.from_group());
  hello.to_group = check.Stage(wire.to_group());
  hello.connection =
      static_cast<int>(check.Count("connection", wire.connection(), kConnectionsMax));
  LH_RETURN_IF_ERROR(check.status());
  return hello;
}

absl::StatusOr<worker::StreamMessage> ReadChunk(v1::FrameChunk& wire) {
  WireCheck check("FrameChunk");
  worker::FrameChunk chunk;
  chunk.sequence = check.Count("sequence", wire.sequence(), kCountMax);
  chunk.frame_bytes = check.Count("frame_bytes", wire.frame_bytes(), kCountMax);
  chunk.offset = check.Count("offset", wire.offset(), chunk.frame_bytes);
  check.Count("data bytes", wire.data().size(), chunk.frame_bytes - chunk.offset);
  LH_RETURN_IF_ERROR(check.status());
  chunk.bytes = std::move(*wire.mutable_data());
  return chunk;
}

}  // namespace

v1::StreamMessage ToWire(const worker::StreamMessage& message) {
  v1::StreamMessage wire;
  if (const auto* hello = std::get_if<worker::StreamHello>(&message)) {
    v1::StreamHello* out = wire.mutable_hello();
    out->set_run(hello->run);
    ToWire(hello->epoch, out->mutable_epoch());
    out->set_token(hello->token);
    out->set_from_group(static_cast<uint32_t>(hello->from_group));
    out->set_to_group(static_cast<uint32_t>(hello->to_group));
    out->set_connection(static_cast<uint32_t>(hello->connection));
  } else if (const auto* chunk = std::get_if<worker::FrameChunk>(&message)) {
    v1::FrameChunk* out = wire.mutable_chunk();
    out->set_sequence(chunk->sequence);
    out->set_offset(chunk->offset);
    out->set_frame_bytes(chunk->frame_bytes);
    out->set_data(chunk->bytes);
  } else {
    wire.mutable_sign_of_life();
  }
  return wire;
}

v1::StreamReply ToWire(const worker::StreamReply& reply) {
  v1::StreamReply wire;
  if (const auto* welcome = std::get_if<worker::StreamWelcome>(&reply)) {
    wire.mutable_welcome()->set_next_sequence(welcome->next_sequence);
    wire.mutable_welcome()->set_consumed_before(welcome->consumed_before);
  } else if (const auto* consumed = std::get_if<worker::FrameConsumed>(&reply)) {
    wire.mutable_consumed()->set_sequence(consumed->sequence);
  } else {
    wire.mutable_sign_of_life();
  }
  return wire;
}

absl::StatusOr<worker::StreamMessage> FromWire(v1::StreamMessage&& wire) {
  if (wire.has_hello()) return ReadHello(wire.hello());
  if (wire.has_chunk()) return ReadChunk(*wire.mutable_chunk());
  if (wire.has_sign_of_life()) return worker::SignOfLife{};
  return absl::InvalidArgumentError("StreamMessage: nothing that is known here");
}

absl::StatusOr<worker::StreamReply> FromWire(const v1::StreamReply& wire) {
  if (wire.has_welcome()) {
    WireCheck check("StreamWelcome");
    worker::StreamWelcome welcome;
    welcome.next_sequence = check.Count("next_sequence", wire.welcome().next_sequence(), kCountMax);
    welcome.consumed_before =
        check.Count("consumed_before", wire.welcome().consumed_before(), kCountMax);
    LH_RETURN_IF_ERROR(check.status());
    return welcome;
  }
  if (wire.has_consumed()) {
    WireCheck check("FrameConsumed");
    const worker::FrameConsumed consumed{
        check.Count("sequence", wire.consumed().sequence(), kCountMax)};
    LH_RETURN_IF_ERROR(check.status());
    return consumed;
  }
  if (wire.has_sign_of_life()) return worker::SignOfLife{};
  return absl::InvalidArgumentError("StreamReply: nothing that is known here");
}

}  // namespace longhaul::daemon
