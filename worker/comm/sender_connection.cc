#include "worker/comm/sender_connection.h"

#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/comm/reconnect_pause.h"

namespace longhaul::worker {

SenderConnection::SenderConnection(const LinkContext& context, int connection, Transport& transport,
                                   SendQueue& queue, LinkHealth& health)
    : context_(context),
      connection_(connection),
      transport_(transport),
      queue_(queue),
      health_(health),
      thread_([this] { Run(); }) {}

SenderConnection::~SenderConnection() {
  Stop();
  thread_.join();
}

void SenderConnection::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopping_ = true;
  if (stream_ != nullptr) stream_->Cancel();
  changed_.notify_all();
}

bool SenderConnection::SetStream(ClientStream* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  stream_ = stream;
  return !stopping_;
}

void SenderConnection::Run() {
  while (true) {
    const absl::Status status = RunStream();
    queue_.Broken(connection_);
    health_.Broken(connection_, status);
    const absl::Duration pause =
        ReconnectPause(context_.exchange, context_.link, connection_, failures_);
    ++failures_;
    std::unique_lock<std::mutex> lock(mutex_);
    if (context_.clock.WaitUntil(lock, changed_, context_.clock.Now() + pause,
                                 [this] { return stopping_; })) {
      return;
    }
  }
}

absl::Status SenderConnection::RunStream() {
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<ClientStream> stream,
                      transport_.Dial(context_.link.peer_node, context_.link.peer_address,
                                      context_.clock.Now() + kDialTimeout));
  queue_.Dialling(connection_);
  absl::Status read_status;
  if (SetStream(stream.get())) {
    std::thread reader([this, &stream, &read_status] {
      read_status = ReadReplies(*stream);
      queue_.Broken(connection_);
    });
    const absl::Status write_status = WriteMessages(*stream);
    // The reader knows the peer's reason, once the stream has ended.
    const bool peer_ended = queue_.WaitBroken(connection_, context_.clock.Now() + absl::Seconds(1));
    stream->Cancel();
    reader.join();
    if (!peer_ended && !write_status.ok()) read_status = write_status;
  }
  SetStream(nullptr);
  return read_status;
}

absl::Status SenderConnection::WriteMessages(ClientStream& stream) {
  StreamHello hello;
  hello.run = context_.exchange.run;
  hello.epoch = context_.exchange.epoch;
  hello.token = context_.exchange.token;
  hello.from_group = context_.exchange.group;
  hello.to_group = context_.link.peer_group;
  hello.connection = connection_;
  LH_RETURN_IF_ERROR(stream.Write(hello));
  const absl::Time deadline = context_.clock.Now() + kWelcomeTimeout;
  if (!queue_.WaitWelcomed(connection_, deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer to the hello within ", Seconds(kWelcomeTimeout)));
  }
  absl::Time sign_of_life_at = context_.clock.Now() + context_.exchange.sign_of_life_every;
  while (true) {
    const std::optional<StreamMessage> message = queue_.NextMessage(connection_, sign_of_life_at);
    if (!message) return absl::OkStatus();
    sign_of_life_at = context_.clock.Now() + context_.exchange.sign_of_life_every;
    LH_RETURN_IF_ERROR(stream.Write(*message));
    const auto* const chunk = std::get_if<FrameChunk>(&*message);
    if (chunk != nullptr) context_.counters.bytes_sent += chunk->bytes.size();
  }
}

absl::Status SenderConnection::ReadReplies(ClientStream& stream) {
  bool welcomed = false;
  while (true) {
    LH_ASSIGN_OR_RETURN(const StreamReply reply, stream.Read());
    if (const auto* welcome = std::get_if<StreamWelcome>(&reply)) {
      if (welcomed) return absl::InvalidArgumentError("it welcomed one stream twice");
      welcomed = true;
      health_.Connected(connection_);
      LH_RETURN_IF_ERROR(queue_.Welcomed(connection_, *welcome));
      continue;
    }
    if (!welcomed) return absl::InvalidArgumentError("it answered a hello without a welcome");
    if (const auto* consumed = std::get_if<FrameConsumed>(&reply)) {
      LH_RETURN_IF_ERROR(queue_.Consumed(consumed->sequence));
      failures_ = 0;
    } else {
      ++context_.counters.signs_of_life_received;
    }
    health_.Heard(connection_);
  }
}

}  // namespace longhaul::worker
