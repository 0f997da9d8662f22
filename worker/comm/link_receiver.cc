#include "worker/comm/link_receiver.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "compression/frame.h"

namespace longhaul::worker {

using compression::FrameHeader;
using compression::kFrameHeaderBytes;

namespace {

// A few frames may be damaged on the way of a link that is still of use.
constexpr int kRefusedInARowMax = 5;

}  // namespace

LinkReceiver::LinkReceiver(const LinkContext& context, LinkRules rules)
    : context_(context),
      rules_(std::move(rules)),
      health_(context.link.connections, context.exchange.silence_max, context.clock),
      assembler_({rules_.frame_bytes_max(),
                  rules_.kinds() * static_cast<size_t>(context.link.window),
                  context.exchange.chunk_bytes}),
      inbox_(context.link.window) {}

absl::Status LinkReceiver::Serve(const StreamHello& hello, ServerStream& server_stream) {
  Stream stream(server_stream, context_);
  LH_RETURN_IF_ERROR(Enter(hello.connection, stream));
  const absl::Status status = ReadMessages(hello.connection, server_stream);
  Leave(hello.connection, stream, status);
  return status;
}

absl::Status LinkReceiver::Enter(int connection, Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
  Stream*& current = streams_[connection];
  if (current != nullptr) current->stream.Cancel();
  current = &stream;
  stream.writer.Post(StreamWelcome{received_.before(), consumed_.before()});
  for (const uint64_t sequence : consumed_.ahead()) stream.writer.Post(FrameConsumed{sequence});
  health_.Connected(connection);
  return absl::OkStatus();
}

void LinkReceiver::Leave(int connection, Stream& stream, const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto current = streams_.find(connection);
  if (current == streams_.end() || current->second != &stream) return;
  streams_.erase(current);
  health_.Broken(connection, status);
}

absl::Status LinkReceiver::ReadMessages(int connection, ServerStream& stream) {
  while (true) {
    absl::StatusOr<StreamMessage> message = stream.Read();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
    }
    LH_RETURN_IF_ERROR(message.status());
    if (std::holds_alternative<StreamHello>(*message)) {
      return absl::InvalidArgumentError(
          absl::StrCat(PeerName(context_.link), " said hello twice on one stream"));
    }
    if (FrameChunk* const chunk = std::get_if<FrameChunk>(&*message)) {
      LH_RETURN_IF_ERROR(Accept(stream, std::move(*chunk)));
    } else {
      ++context_.counters.signs_of_life_received;
    }
    Heard(connection);
  }
}

void LinkReceiver::Heard(int connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (refused_in_a_row_ <= kRefusedInARowMax) health_.Heard(connection);
}

absl::Status LinkReceiver::Accept(ServerStream& stream, FrameChunk chunk) {
  context_.counters.bytes_received += chunk.bytes.size();
  const uint64_t sequence = chunk.sequence;
  const absl::Status header_status = CheckFirstChunk(chunk);
  std::optional<std::string> frame;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (received_.Contains(sequence)) {
      ++context_.counters.duplicates_dropped;
      return absl::OkStatus();
    }
    if (sequence - consumed_.before() >= kSequencesAheadMax) {
      return absl::InvalidArgumentError(absl::StrCat(PeerName(context_.link), " sent frame ",
                                                     sequence, " while frame ", consumed_.before(),
                                                     " is not consumed"));
    }
    if (header_status.ok()) {
      absl::StatusOr<FrameAssembler::Result> result = assembler_.Add(std::move(chunk));
      if (!result.ok()) return Annotate(result.status(), PeerName(context_.link));
      context_.counters.duplicates_dropped += result->duplicate;
      frame = std::move(result->frame);
    }
  }
  if (!header_status.ok()) return Refuse(stream, header_status);
  return frame ? Deliver(stream, sequence, *std::move(frame)) : absl::OkStatus();
}

absl::Status LinkReceiver::CheckFirstChunk(const FrameChunk& chunk) const {
  if (chunk.offset != 0) return absl::OkStatus();
  LH_ASSIGN_OR_RETURN(const FrameHeader header, compression::ParseFrameHeader(chunk.bytes));
  if (chunk.frame_bytes != kFrameHeaderBytes + header.payload_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(header.key), ": in a frame of ",
                                                   chunk.frame_bytes, " bytes, its header says ",
                                                   header.payload_bytes, " after it"));
  }
  return CheckHeader(header);
}

absl::Status LinkReceiver::CheckHeader(const FrameHeader& header) const {
  // A frame of an older epoch is dropped once it is whole, whatever else it says.
  if (header.key.epoch < context_.exchange.epoch) return absl::OkStatus();
  if (header.key.epoch != context_.exchange.epoch || header.run_hash != context_.run_hash ||
      header.key.stage != static_cast<uint32_t>(context_.exchange.stage)) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(header.key), " of another run, stage or a later epoch, expected run ",
                     context_.exchange.run, " stage ", context_.exchange.stage, " epoch ",
                     ToString(context_.exchange.epoch)));
  }
  return rules_.Check(header);
}

absl::Status LinkReceiver::Deliver(ServerStream& stream, uint64_t sequence, std::string bytes) {
  absl::StatusOr<FrameHeader> header = compression::ParseFrame(bytes);
  absl::Status status = header.status();
  if (status.ok()) status = CheckHeader(*header);
  if (!status.ok()) return Refuse(stream, status);
  if (header->key.epoch < context_.exchange.epoch) {
    ++context_.counters.stale_epochs_dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    received_.Add(sequence);
    assembler_.Forget(sequence);
    ConsumedLocked(sequence);
    return absl::OkStatus();
  }
  return Enqueue({sequence, *std::move(header), std::move(bytes)});
}

absl::Status LinkReceiver::Enqueue(ReceivedFrame frame) {
  const uint64_t sequence = frame.sequence;
  std::lock_guard<std::mutex> lock(mutex_);
  if (received_.Contains(sequence)) {
    ++context_.counters.duplicates_dropped;
    return absl::OkStatus();
  }
  const absl::StatusOr<bool> added = inbox_.Add(std::move(frame));
  if (!added.ok()) return Annotate(added.status(), PeerName(context_.link));
  received_.Add(sequence);
  assembler_.Forget(sequence);
  refused_in_a_row_ = 0;
  if (*added) {
    ++context_.counters.frames_received;
  } else {
    ++context_.counters.duplicates_dropped;
    ConsumedLocked(sequence);
  }
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status LinkReceiver::Refuse(const ServerStream& stream, const absl::Status& status) {
  ++context_.counters.corrupt_dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  ++refused_in_a_row_;
  for (const auto& [connection, other] : streams_) {
    if (&other->stream != &stream) other->stream.Cancel();
  }
  return Annotate(status, PeerName(context_.link));
}

absl::StatusOr<std::shared_ptr<const ReceivedFrame>> LinkReceiver::Wait(const FrameKey& key,
                                                                        absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::shared_ptr<const ReceivedFrame> frame;
  health_.WaitWhileAlive(lock, changed_, deadline, [&] {
    frame = inbox_.Find(key);
    return !cancelled_.ok() || frame != nullptr;
  });
  LH_RETURN_IF_ERROR(OwnCopy(cancelled_));
  if (frame != nullptr) return frame;
  const auto progress = assembler_.Find(key);
  return absl::DeadlineExceededError(
      progress
          ? absl::StrCat(progress->arrived, " of its ", progress->frame_bytes, " bytes arrived")
          : "nothing of it arrived");
}

absl::Status LinkReceiver::WaitForSilence() {
  std::unique_lock<std::mutex> lock(mutex_);
  health_.WaitWhileAlive(lock, changed_, absl::InfiniteFuture(),
                         [this] { return !cancelled_.ok(); });
  return OwnCopy(cancelled_);
}

void LinkReceiver::Consumed(const ReceivedFrame& frame) {
  std::lock_guard<std::mutex> lock(mutex_);
  inbox_.Remove(frame.header.key);
  ConsumedLocked(frame.sequence);
}

void LinkReceiver::ConsumedLocked(uint64_t sequence) {
  consumed_.Add(sequence);
  for (const auto& [connection, stream] : streams_) {
    stream->writer.Post(FrameConsumed{sequence});
  }
}

void LinkReceiver::Cancel(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (cancelled_.ok()) cancelled_ = OwnCopy(reason);
  for (const auto& [connection, stream] : streams_) stream->stream.Cancel();
  changed_.notify_all();
}

}  // namespace longhaul::worker
