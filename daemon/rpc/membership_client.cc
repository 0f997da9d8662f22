#include "daemon/rpc/membership_client.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/backoff.h"
#include "base/bounded_queue.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "daemon/rpc/convert_worker.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"
#include "longhaul/v1/membership.grpc.pb.h"

namespace longhaul::daemon {

// One stream: a writer thread for the queue and the heartbeats; the client's thread reads.
class MembershipClient::Session {
 public:
  Session(const MembershipClientOptions& options, const ControlListener& listener,
          const Credentials& credentials, Clock& clock)
      : options_(options),
        take_readings_(listener.take_readings),
        clock_(clock),
        queue_(options.messages_max, clock),
        stub_(v1::Membership::NewStub(
            OpenChannel(options.coordinator, options.coordinator_name, credentials))) {
    credentials.Sign(context_);
  }

  // Opens the stream with `first` and hands each answer to `listen` until the stream ends or
  // `listen` returns an error.
  absl::Status Run(const worker::Register& first,
                   const std::function<absl::Status(const worker::ToWorker&)>& listen) {
    stream_ = stub_->Session(&context_);
    std::thread writer([this, &first] { Write(first); });
    absl::Status end = Read(listen);
    if (!end.ok()) context_.TryCancel();
    Cancel(absl::OkStatus());
    writer.join();
    const absl::Status finished =
        FromGrpc(stream_->Finish(), absl::StrCat("coordinator ", options_.coordinator));
    std::lock_guard<std::mutex> lock(mutex_);
    if (!end.ok()) return end;
    if (!reason_.ok()) return reason_;
    if (!finished.ok()) return finished;
    return absl::UnavailableError(
        absl::StrCat("coordinator ", options_.coordinator, " closed the control stream"));
  }

  bool Send(const worker::ToCoordinator& message) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!accepted_ || ending_) return false;
    }
    worker::ToCoordinator copy = message;
    if (queue_.TryPush(std::move(copy))) return true;
    Cancel(absl::ResourceExhaustedError("more messages wait for the coordinator than may be held"));
    return false;
  }

  // Ends the stream; `reason` (an error) becomes what Run returns, OK leaves it to the stream.
  void Cancel(const absl::Status& reason) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) return;
      ending_ = true;
      reason_ = reason;
    }
    changed_.notify_all();
    queue_.Close();
    if (!reason.ok()) context_.TryCancel();
  }

 private:
  absl::Status Read(const std::function<absl::Status(const worker::ToWorker&)>& listen) {
    v1::CoordinatorMessage wire;
    while (stream_->Read(&wire)) {
      LH_ASSIGN_OR_RETURN(const worker::ToWorker message, FromWire(wire));
      if (const auto* accepted = std::get_if<worker::Accepted>(&message)) {
        {
          std::lock_guard<std::mutex> lock(mutex_);
          accepted_ = true;
          heartbeat_every_ = accepted->heartbeat_every;
        }
        changed_.notify_all();
      } else if (!accepted_ && !std::holds_alternative<worker::Refused>(message)) {
        return absl::InvalidArgumentError("the coordinator's first answer is not one");
      }
      LH_RETURN_IF_ERROR(listen(message));
    }
    return absl::OkStatus();
  }

  // Whether the coordinator answered before the deadline.
  bool WaitForAnswer() {
    std::unique_lock<std::mutex> lock(mutex_);
    return clock_.WaitUntil(lock, changed_, clock_.Now() + options_.answer_max,
                            [this] { return accepted_ || ending_; });
  }

  void Write(const worker::Register& first) {
    if (!stream_->Write(ToWire(worker::ToCoordinator(first)))) return;
    if (!WaitForAnswer()) {
      Cancel(absl::DeadlineExceededError(absl::StrCat("coordinator ", options_.coordinator,
                                                      " did not answer within ",
                                                      absl::FormatDuration(options_.answer_max))));
      return;
    }
    absl::Time heartbeat_at = clock_.Now();
    for (;;) {
      if (clock_.Now() >= heartbeat_at) {
        const worker::Heartbeat heartbeat = {take_readings_ ? take_readings_() : std::nullopt};
        if (!stream_->Write(ToWire(worker::ToCoordinator(heartbeat)))) return;
        heartbeat_at = clock_.Now() + HeartbeatEvery();
      }
      const std::optional<worker::ToCoordinator> message = queue_.Pop(heartbeat_at);
      if (!message && queue_.closed()) return;
      if (message && !stream_->Write(ToWire(*message))) return;
    }
  }

  absl::Duration HeartbeatEvery() {
    std::lock_guard<std::mutex> lock(mutex_);
    return heartbeat_every_;
  }

  const MembershipClientOptions& options_;
  const std::function<std::optional<control::CardReadings>()> take_readings_;
  Clock& clock_;
  BoundedQueue<worker::ToCoordinator> queue_;
  std::unique_ptr<v1::Membership::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool accepted_ = false;  // guarded by mutex_, as all below; written by the reading thread only
  bool ending_ = false;
  absl::Status reason_;
  absl::Duration heartbeat_every_ = absl::Seconds(1);
};

MembershipClient::MembershipClient(MembershipClientOptions options, const Credentials& credentials,
                                   Clock& clock, const Log& log)
    : options_(std::move(options)),
      credentials_(credentials),
      clock_(clock),
      log_(log),
      membership_(absl::UnavailableError("not connected yet")) {}

MembershipClient::~MembershipClient() { Stop(); }

void MembershipClient::Start(ControlListener listener) {
  listener_ = std::move(listener);
  thread_ = std::thread([this] { Run(); });
}

void MembershipClient::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (session_ != nullptr) session_->Cancel(absl::CancelledError("this worker is leaving"));
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool MembershipClient::Send(const worker::ToCoordinator& message) {
  std::shared_ptr<Session> session;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    session = session_;
  }
  return session != nullptr && session->Send(message);
}

absl::Status MembershipClient::membership() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return membership_;
}

void MembershipClient::Run() {
  int failures = 0;
  for (;;) {
    bool accepted = false;
    const absl::Status end = RunSession(accepted);
    failures = accepted ? 0 : std::min(failures + 1, 30);
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopping_) return;
    lock.unlock();
    SetMembership(end);
    lock.lock();
    const absl::Time again =
        clock_.Now() + (unwanted_ ? options_.retry_when_unwanted : RetryPause(options_, failures));
    if (clock_.WaitUntil(lock, changed_, again, [this] { return stopping_; })) return;
  }
}

absl::Status MembershipClient::RunSession(bool& accepted) {
  auto session = std::make_shared<Session>(options_, listener_, credentials_, clock_);
  const worker::Register first = listener_.make_register();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError("this worker is leaving");
    unwanted_ = false;
    session_ = session;
  }
  const absl::Status end = session->Run(first, [this, &accepted](const worker::ToWorker& message) {
    if (const auto* refused = std::get_if<worker::Refused>(&message)) {
      std::lock_guard<std::mutex> lock(mutex_);
      unwanted_ = !refused->retry;
      return refused->reason;
    }
    if (std::holds_alternative<worker::Accepted>(message)) {
      accepted = true;
      SetMembership(absl::OkStatus());
    }
    listener_.on_message(message);
    return absl::OkStatus();
  });
  std::lock_guard<std::mutex> lock(mutex_);
  session_ = nullptr;
  return end;
}

void MembershipClient::SetMembership(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (membership_ == status) return;
    membership_ = status;
  }
  if (status.ok()) {
    log_.Info("part of the cluster", {{"coordinator", options_.coordinator}});
    return;
  }
  log_.Error("NOT PART OF THE CLUSTER; trying again",
             {{"coordinator", options_.coordinator}, {"reason", std::string(status.message())}});
}

absl::Duration RetryPause(const MembershipClientOptions& options, int failures) {
  const auto seed = std::array<uint32_t, 2>{static_cast<uint32_t>(options.jitter_seed),
                                            static_cast<uint32_t>(options.jitter_seed >> 32)};
  const uint32_t draw = Philox4x32({static_cast<uint32_t>(failures), 0, 0, 0}, seed)[0];
  return BackoffPause(options.retry_min, options.retry_max, failures - 1, draw);
}

}  // namespace longhaul::daemon
