// What the host sends to workers, with everything filled in: daemon/rpc only converts it.
#ifndef LONGHAUL_COORDINATOR_HOST_WORKER_MESSAGES_H_
#define LONGHAUL_COORDINATOR_HOST_WORKER_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "checkpoint/manifest.h"
#include "model/graph.h"
#include "run/run_spec.h"

namespace longhaul::coordinator {

struct AcceptedMessage {
  absl::Duration lease;
  absl::Duration heartbeat_every;
};
// The last message of its session; the stream is closed after it.
struct RefusedMessage {
  absl::Status reason;
  bool retry = true;
};
struct AssignedStage {
  std::string node;
  std::string data_address;
  model::OpRange range;
  int slots = 1;
};
struct AssignmentMessage {
  std::string run;
  Epoch epoch;
  std::string token;
  run::RunSpec spec;
  int stage = 0;
  std::vector<AssignedStage> stages;     // all, in pipeline order; [stage] is the receiver
  std::vector<std::string> link_codecs;  // link s is between stages s and s+1
  std::string numeric_class;
  int64_t start_step = 0;
  std::optional<checkpoint::Manifest> checkpoint;  // absent: initial weights
};
struct StartMessage {
  std::string run;
  Epoch epoch;
};
struct StopMessage {
  std::string run;
  Epoch epoch;
};
struct AbortMessage {
  std::string run;
  Epoch epoch;
  std::string reason;
};
struct StepAcknowledgedMessage {
  std::string run;
  Epoch epoch;
  int64_t step = 0;
};
struct ReleasedMessage {
  std::string run;
  Epoch epoch;
};

using WorkerMessage =
    std::variant<AcceptedMessage, RefusedMessage, AssignmentMessage, StartMessage, StopMessage,
                 AbortMessage, StepAcknowledgedMessage, ReleasedMessage>;

// Where messages to workers go; implemented by daemon/rpc.
class SessionSink {
 public:
  virtual ~SessionSink() = default;
  // Called from the host's loop thread only; never blocks, never calls the host back. Messages of a
  // session keep their order. A session that is gone swallows them.
  virtual void Send(uint64_t session, WorkerMessage message) = 0;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_WORKER_MESSAGES_H_
