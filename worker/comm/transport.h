// What the exchange needs from a network: streams of messages that are delivered in order until the
// stream breaks. gRPC implements it in daemon/rpc; tests use the in-process transport.
#ifndef LONGHAUL_WORKER_COMM_TRANSPORT_H_
#define LONGHAUL_WORKER_COMM_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"

namespace longhaul::worker {

// First message of a stream: who sends to whom. The token proves that the sender was given the same
// assignment.
struct StreamHello {
  std::string run;
  Epoch epoch;
  std::string token;
  int from_group = 0;  // device groups of the plan
  int to_group = 0;
  int connection = 0;  // which of the link's parallel connections
};

// A piece of frame number `sequence` of the link (counted from 0, over all its connections).
struct FrameChunk {
  uint64_t sequence = 0;
  uint64_t offset = 0;
  uint64_t frame_bytes = 0;  // of the whole frame
  std::string bytes;
};

// Nothing but that the sender is there: written by either end when it has had nothing else to write
// for a while, so that a peer that computes is told from a link that is lost.
struct SignOfLife {};

using StreamMessage = std::variant<StreamHello, FrameChunk, SignOfLife>;

// Answer to a hello: every frame before `next_sequence` has arrived whole; resend from there. Every
// frame before `consumed_before` has been consumed as well. Frames from there on that have been
// consumed out of order follow as FrameConsumed on the same stream, so that nothing that was said
// on a stream that broke is lost, and neither side needs to know what was.
struct StreamWelcome {
  uint64_t next_sequence = 0;
  uint64_t consumed_before = 0;
};

// The frame was consumed by the receiving program; the sender forgets it. May be repeated.
struct FrameConsumed {
  uint64_t sequence = 0;
};

using StreamReply = std::variant<StreamWelcome, FrameConsumed, SignOfLife>;

// The dialling side of one stream. One writer and one reader thread at a time; Cancel from any.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // Waits for flow control, bounded by the stream's life; an error means that the stream is broken.
  virtual absl::Status Write(const StreamMessage& message) = 0;
  virtual absl::StatusOr<StreamReply> Read() = 0;
  // Makes Write and Read return Cancelled soon.
  virtual void Cancel() = 0;
};

// The accepting side.
class ServerStream {
 public:
  virtual ~ServerStream() = default;
  virtual absl::StatusOr<StreamMessage> Read() = 0;
  virtual absl::Status Write(const StreamReply& reply) = 0;
  virtual void Cancel() = 0;
  // The peer's certified name, or its address where TLS is off; for messages.
  virtual std::string peer() const = 0;
};

// Serves accepted streams: runs until the stream ends, on a thread of the transport, and only
// validates and enqueues. The status is the stream's end as the peer sees it.
class StreamAcceptor {
 public:
  virtual ~StreamAcceptor() = default;
  virtual absl::Status Serve(ServerStream& stream) = 0;
};

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // Opens a stream to the worker `node` at `address`. Errors name both.
  virtual absl::StatusOr<std::unique_ptr<ClientStream>> Dial(const std::string& node,
                                                             const std::string& address,
                                                             absl::Time deadline) = 0;
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_TRANSPORT_H_
