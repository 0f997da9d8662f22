// The exchange of one device group with its peers: tensors in, tensors out, by key. What happens
// below (encoding, framing, chunks, parallel connections, reconnecting, resending, dropping
// duplicates) does not show here.
#ifndef LONGHAUL_WORKER_COMM_EXCHANGE_H_
#define LONGHAUL_WORKER_COMM_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/ids.h"
#include "worker/comm/transport.h"

namespace longhaul::worker {

// One link of this device group, as the plan has it. Both directions between the two groups.
// Between two groups of one stage no frames travel, only signs of life.
struct LinkOptions {
  int peer_group = 0;
  int peer_stage = 0;
  std::string peer_name;  // "stage 1 replica 2", for messages; empty: by its stage
  std::string peer_node;
  std::string peer_address;      // data plane, host:port
  std::string codec = "none";    // for activations and gradients; control frames are never encoded
  uint64_t tensor_elements = 0;  // activation and gradient elements of one micro-batch
  uint64_t tied_elements = 0;    // elements of a tied sum; 0: none on this link
  uint64_t norms_max = 0;        // doubles in a norms frame at most
  int window = 1;                // frames of one kind unconsumed at most
  int connections = 1;           // parallel streams to the peer
};

struct ExchangeOptions {
  std::string run;
  Epoch epoch;
  std::string token;
  int group = 0;
  int stage = 0;
  std::string name;  // "stage 1 replica 2", for messages; empty: by its stage
  std::vector<LinkOptions> links;
  absl::Duration reconnect_min = absl::Milliseconds(50);
  absl::Duration reconnect_max = absl::Seconds(2);
  // Of the draws that spread reconnections: another for each node, so that the links of a site that
  // was cut off do not come back in step.
  uint64_t jitter_seed = 0;
  uint64_t chunk_bytes = 256 * 1024;  // the same on both ends of a link
  // How often an end that has nothing else to write says that it is there, on each stream.
  absl::Duration sign_of_life_every = absl::Milliseconds(200);
  // A wait for a peer fails when nothing was heard of it over the link for this long. At least five
  // times sign_of_life_every; infinite: only deadlines end waits.
  absl::Duration silence_max = absl::InfiniteDuration();
};

// Serves streams whose hello was read. Thread-safe.
class StreamServer {
 public:
  virtual ~StreamServer() = default;
  // As StreamAcceptor::Serve, after `hello`, whose run, epoch and token are this server's.
  virtual absl::Status Serve(const StreamHello& hello, ServerStream& stream) = 0;
};

// Doubles in a verdict frame at most.
inline constexpr uint64_t kVerdictDoublesMax = 64;

// Counters since the start; for reports and tests. frames_resent counts frames of which a part was
// written again; duplicates_dropped counts received pieces that were already here.
struct ExchangeCounters {
  uint64_t frames_sent = 0, frames_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t frames_resent = 0, reconnects = 0;
  uint64_t duplicates_dropped = 0, stale_epochs_dropped = 0, corrupt_dropped = 0;
  uint64_t signs_of_life_received = 0;

  ExchangeCounters& operator+=(const ExchangeCounters& other);
};

// A tensor as a codec has encoded it.
struct EncodedTensor {
  absl::string_view codec;
  uint64_t elements = 0;
  absl::Span<const uint8_t> bytes;
};

// Receive is for the executor's thread; Send and SendEncoded for that or one other, frames of one
// kind always for the same; Serve for transport threads; Cancel for any.
//
// How long a wait may take: until its deadline, and no longer than silence_max after its begin and
// the last sign of life of the peer in the direction that is waited for. A sign of life is whatever
// comes over a stream after its handshake: a chunk of any frame, a consumption, or a SignOfLife,
// which an end writes when it has nothing else to write. So a peer that computes for hours, or a
// slow link over which one frame takes long, is waited for; a link that broke or went silent and
// does not come back is an error within silence_max, whether or not the peer is well. The slowest
// link that works is one that carries chunk_bytes for each of its `connections` within silence_max:
// 256 KiB in the 10 s of a usual lease, 0.21 Mbit/s a connection. What does not come from a peer's
// transport threads is not noticed here: a process that hangs as a whole falls silent here too and
// loses its lease at the coordinator. A link that delivers corrupt frames only is taken for silent
// after a few.
class Exchange : public StreamServer {
 public:
  // Encodes `values` with the link's codec (activation, gradient and evaluation kinds) or
  // losslessly as they are (tied kinds), and hands the frame to the link's sender threads. `values`
  // may be reused on return. Waits only while the window of (link, kind) is full. DeadlineExceeded
  // (the deadline or silence) names peer, stage, micro-batch and how long it waited.
  virtual absl::Status Send(int peer_group, const FrameKey& key, absl::Span<const float> values,
                            absl::Time deadline) = 0;
  // As Send, of a tensor that was encoded elsewhere with the codec that Send would take: the frame
  // is the same.
  virtual absl::Status SendEncoded(int peer_group, const FrameKey& key, const EncodedTensor& tensor,
                                   absl::Time deadline) = 0;
  virtual absl::Status SendDoubles(int peer_group, const FrameKey& key,
                                   absl::Span<const double> values, absl::Time deadline) = 0;

  // Waits for the frame with exactly this key and decodes it into `values`, which must have its
  // exact size. Once it returns OK the frame is consumed; the same key never arrives again.
  // DeadlineExceeded as above, with how much of the frame has arrived.
  virtual absl::Status Receive(int peer_group, const FrameKey& key, absl::Span<float> values,
                               absl::Time deadline) = 0;
  // As Receive, but `take` gets the tensor of `elements` values encoded as it came, for the call:
  // whole, with the link's codec, and of a size that this many values may have. The frame is
  // consumed once `take` returns OK; its error is returned.
  virtual absl::Status ReceiveEncoded(
      int peer_group, const FrameKey& key, uint64_t elements,
      absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes)> take,
      absl::Time deadline) = 0;
  virtual absl::StatusOr<std::vector<double>> ReceiveDoubles(int peer_group, const FrameKey& key,
                                                             absl::Time deadline) = 0;

  // Waits until every frame sent has been consumed, so that the links can be closed without loss.
  virtual absl::Status Flush(absl::Time deadline) = 0;

  // Waits until nothing was heard of the peer for silence_max, since the call's begin at the
  // earliest: DeadlineExceeded, which names the peer and its link. The reason of Cancel otherwise.
  // On any thread.
  virtual absl::Status WaitForSilence(int peer_group) = 0;

  // Every present and future wait returns `reason`; links close. Idempotent; the first reason
  // stays.
  virtual void Cancel(const absl::Status& reason) = 0;

  virtual ExchangeCounters counters() const = 0;
};

// `transport` and `clock` must outlive the exchange. An ExchangeRouter hands it accepted streams.
// The destructor cancels and joins.
absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeOptions& options,
                                                       Transport& transport, Clock& clock);

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_EXCHANGE_H_
