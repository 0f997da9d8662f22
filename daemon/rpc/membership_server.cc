#include "daemon/rpc/membership_server.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "daemon/rpc/convert_coordinator.h"
#include "daemon/rpc/status.h"

namespace longhaul::daemon {
namespace {

// Whether a worker is refused for what only a person can change at one of the two ends: its facts,
// its protocol, its certificate.
bool IsForGood(const absl::Status& reason) {
  return absl::IsInvalidArgument(reason) || absl::IsFailedPrecondition(reason) ||
         absl::IsPermissionDenied(reason);
}

}  // namespace

// Writes a session's queue to its stream, on a thread of its own; ends the stream when no Register
// comes in time, when the queue overflows, and after a refusal.
class MembershipServer::Writer {
 public:
  Writer(grpc::ServerContext& context, Stream& stream, const MembershipServerOptions& options,
         Clock& clock)
      : context_(context), stream_(stream), options_(options), clock_(clock), thread_([this] {
          Run();
          std::lock_guard<std::mutex> lock(mutex_);
          finished_ = true;
          changed_.notify_all();
        }) {}

  // A peer that does not read what is still to be written is not waited for.
  ~Writer() {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ending_ = true;
      if (queue_ != nullptr) queue_->Close();
      changed_.notify_all();
      const bool finished = clock_.WaitUntil(lock, changed_, clock_.Now() + options_.write_grace,
                                             [this] { return finished_; });
      if (!finished) context_.TryCancel();
    }
    thread_.join();
  }

  // From now on `queue` is written.
  void Write(std::shared_ptr<SessionTable::Queue> queue) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_ = std::move(queue);
    }
    changed_.notify_all();
  }

  // The handler is about to return: the stream ends with its status, not by being cancelled.
  void End() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
  }

 private:
  // Whether the server has ended the stream by `deadline`.
  bool EndsBefore(absl::Time deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    return clock_.WaitUntil(lock, changed_, deadline, [this] { return ending_; });
  }

  std::shared_ptr<SessionTable::Queue> WaitForQueue() {
    std::unique_lock<std::mutex> lock(mutex_);
    clock_.WaitUntil(lock, changed_, clock_.Now() + options_.register_max,
                     [this] { return ending_ || queue_ != nullptr; });
    return queue_;
  }

  void Run() {
    const std::shared_ptr<SessionTable::Queue> queue = WaitForQueue();
    if (queue == nullptr) {
      if (!EndsBefore(clock_.Now())) context_.TryCancel();
      return;
    }
    for (;;) {
      std::optional<control::ToWorker> message = queue->Pop(clock_.Now() + absl::Minutes(1));
      if (!message && queue->closed()) break;
      if (!message) continue;
      if (!stream_.Write(ToWire(*message))) return;
      if (!std::holds_alternative<control::Refused>(*message)) continue;
      EndsBefore(clock_.Now() + options_.refusal_grace);
      break;
    }
    if (!EndsBefore(clock_.Now())) context_.TryCancel();
  }

  grpc::ServerContext& context_;
  Stream& stream_;
  const MembershipServerOptions& options_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;                         // guarded by mutex_
  bool finished_ = false;                       // guarded by mutex_; nothing is written any more
  std::shared_ptr<SessionTable::Queue> queue_;  // guarded by mutex_
  std::thread thread_;
};

MembershipServer::MembershipServer(MembershipServerOptions options, EventSink sink,
                                   SessionTable& sessions, const Credentials& credentials,
                                   Clock& clock, const Log& log)
    : options_(options),
      sink_(std::move(sink)),
      sessions_(sessions),
      credentials_(credentials),
      clock_(clock),
      log_(log) {}

grpc::Status MembershipServer::Session(grpc::ServerContext* context, Stream* stream) {
  if (const absl::Status known = credentials_.CheckCall(*context); !known.ok()) {
    return Refuse(*context, *stream, known);
  }
  Writer writer(*context, *stream, options_, clock_);
  v1::WorkerMessage first;
  if (!stream->Read(&first)) {
    return ToGrpc(absl::CancelledError("the stream ended before Register"));
  }
  const uint64_t session = sink_.new_session();
  absl::StatusOr<coordinator::NodeConnected> connected = Admit(*context, first, session);
  if (!connected.ok()) return Refuse(*context, *stream, connected.status());
  const std::string node = connected->facts.profile.name;
  writer.Write(sessions_.Open(session));
  absl::Status end = absl::UnavailableError("the coordinator is too busy; try again");
  if (sink_.post(*std::move(connected))) {
    log_.Debug("control stream opened", {{"node", node}, {"peer", DescribePeer(*context)}});
    end = ReadUntilTheEnd(*stream, session);
  }
  writer.End();  // before its queue closes, which would look like the coordinator's own end
  sessions_.Close(session);
  sink_.post(coordinator::NodeDisconnected{session, std::string(end.message())});
  if (!end.ok()) {
    log_.Warning("control stream ended", {{"node", node}, {"reason", std::string(end.message())}});
  }
  return ToGrpc(end);
}

absl::StatusOr<coordinator::NodeConnected> MembershipServer::Admit(
    const grpc::ServerContext& context, const v1::WorkerMessage& first, uint64_t session) const {
  if (!first.has_register_()) {
    return absl::InvalidArgumentError("the first message of a control stream must be Register");
  }
  LH_ASSIGN_OR_RETURN(coordinator::NodeConnected connected,
                      RegisterFromWire(first.register_(), session, context.peer()));
  LH_RETURN_IF_ERROR(credentials_.CheckPeerName(context, connected.facts.profile.name));
  return connected;
}

grpc::Status MembershipServer::Refuse(const grpc::ServerContext& context, Stream& stream,
                                      const absl::Status& reason) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  log_.Warning("control stream refused",
               {{"peer", DescribePeer(context)}, {"reason", std::string(reason.message())}});
  stream.Write(ToWire(control::Refused{reason, !IsForGood(reason)}));
  return ToGrpc(reason);
}

absl::Status MembershipServer::ReadUntilTheEnd(Stream& stream, uint64_t session) const {
  v1::WorkerMessage wire;
  while (stream.Read(&wire)) {
    LH_ASSIGN_OR_RETURN(coordinator::Event event, FromWire(wire, session));
    if (!sink_.post(std::move(event))) {
      return absl::UnavailableError("the coordinator is too busy; attach again");
    }
  }
  return absl::OkStatus();
}

}  // namespace longhaul::daemon
