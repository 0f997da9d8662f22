#include "daemon/rpc/convert_coordinator.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "daemon/rpc/convert_device.h"
#include "daemon/rpc/protocol.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/wire_check.h"

namespace longhaul::daemon {
namespace {

constexpr uint64_t kThreadsMax = 65536;

template <typename Message, typename Wire>
Message StageMessage(const Wire& wire, WireCheck& check) {
  Message message;
  message.run = check.Run(wire.run());
  message.epoch = FromWire(wire.epoch());
  message.stage = check.Stage(wire.stage());
  message.step = check.Step(wire.step());
  return message;
}

coordinator::NodeFacts ReadFacts(const v1::Register& wire, WireCheck& check) {
  coordinator::NodeFacts facts;
  facts.incarnation = check.Count("incarnation", wire.incarnation(), kCountMax);
  facts.data_address = check.DialAddress("data_address", wire.data_address());
  facts.version = check.Text("build_version", wire.build_version(), 64);
  coordinator::NodeProfile& profile = facts.profile;
  profile.name = check.Name("node", wire.node());
  profile.site = check.Name("site", wire.site());
  profile.host = check.Text("host", wire.host(), 256);
  const v1::Device& device = wire.device();
  profile.numeric_class = check.Text("numeric_class", device.numeric_class(), 256);
  profile.threads = static_cast<int>(check.Count("threads", device.threads(), kThreadsMax));
  profile.host_cores =
      static_cast<int>(check.Count("host_cores", device.host_cores(), kThreadsMax));
  profile.memory_bytes = check.Size("memory_bytes", device.memory_bytes());
  profile.process_bytes = check.Size("process_bytes", device.process_bytes());
  profile.flops_per_second = check.Measure("flops_per_second", device.flops_per_second());
  profile.bytes_per_second = check.Measure("bytes_per_second", device.bytes_per_second());
  profile.bfloat16_flops_per_second =
      check.Measure("bfloat16_flops_per_second", device.bfloat16_flops_per_second());
  profile.trusted_network = wire.trusted_network();
  profile.device_kind = DeviceKindFromWire(device.device_kind(), check);
  profile.device_name = check.Text("device_name", device.device_name(), 256);
  if (device.has_card()) facts.card = FromWire(device.card(), check);
  if (facts.card) {
    profile.device_uuid = facts.card->uuid;
    profile.device_memory_bytes = facts.card->memory_bytes;
  }
  if (profile.threads < 1) check.Also(absl::InvalidArgumentError("threads: 0"));
  return facts;
}

absl::StatusOr<coordinator::Event> ReadStepReport(const v1::StepReport& wire, uint64_t session) {
  WireCheck check("StepReport");
  coordinator::StepReported event;
  event.session = session;
  event.said = StageMessage<control::StepReport>(wire, check);
  control::StepReport& report = event.said;
  report.stages = static_cast<int>(check.Count("stages", wire.stages(), kStagesMax));
  report.applied = wire.applied();
  // A diverged run's loss and norm are not finite, and people must see that.
  report.loss = wire.loss();
  report.gradient_norm = wire.gradient_norm();
  report.learning_rate = check.Measure("learning_rate", wire.learning_rate());
  report.tokens = static_cast<int64_t>(check.Count("tokens", wire.tokens(), kCountMax));
  report.total_seconds = check.Measure("total_seconds", wire.total_seconds());
  report.compute_seconds = check.Measure("compute_seconds", wire.compute_seconds());
  report.wait_seconds = check.Measure("wait_seconds", wire.wait_seconds());
  report.has_validation = wire.has_validation();
  report.validation_loss = wire.validation_loss();
  if (report.stage >= report.stages)
    check.Also(absl::InvalidArgumentError("stage: not below stages"));
  if (report.step < 1) check.Also(absl::InvalidArgumentError("step: 0"));
  LH_RETURN_IF_ERROR(check.status());
  return event;
}

absl::StatusOr<coordinator::Event> ReadShardStored(const v1::ShardStored& wire, uint64_t session) {
  WireCheck check("ShardStored");
  coordinator::ShardStored event = {session, StageMessage<control::ShardStored>(wire, check)};
  event.said.shard = check.Shard(wire.shard());
  LH_RETURN_IF_ERROR(check.status());
  return event;
}

// Failures carry a status that must be one.
template <typename Message, typename Wire>
absl::StatusOr<coordinator::Event> ReadFailure(absl::string_view name, const Wire& wire,
                                               uint64_t session) {
  WireCheck check(name);
  coordinator::From<Message> event = {session, StageMessage<Message>(wire, check)};
  event.said.status =
      absl::Status(ErrorCodeFromWire(wire.code()), check.Text("message", wire.message()));
  if constexpr (requires { event.said.damaged_shard; }) {
    event.said.damaged_shard = wire.damaged_shard();
    if (!event.said.damaged_shard.empty() && !IsSha256Hex(event.said.damaged_shard)) {
      check.Also(absl::InvalidArgumentError("damaged_shard: not 64 hexadecimal digits"));
    }
    if (wire.has_divergence()) event.said.divergence = wire.divergence();
  }
  LH_RETURN_IF_ERROR(check.status());
  return event;
}

struct Writer {
  v1::CoordinatorMessage& wire;

  void operator()(const control::Accepted& message) {
    v1::Accepted* out = wire.mutable_accepted();
    const ProtocolVersions own = OwnProtocol();
    out->mutable_protocol()->set_oldest(own.oldest);
    out->mutable_protocol()->set_newest(own.newest);
    out->set_build_version(own.build);
    out->set_lease_milliseconds(absl::ToInt64Milliseconds(message.lease));
    out->set_heartbeat_milliseconds(absl::ToInt64Milliseconds(message.heartbeat_every));
  }
  void operator()(const control::Refused& message) {
    v1::Refused* out = wire.mutable_refused();
    out->set_code(message.reason.raw_code());
    out->set_message(WireText(message.reason.message(), kTextBytesMax));
    out->set_retry(message.retry);
  }
  void operator()(const control::Assignment& message) {
    v1::Assignment* out = SetPlace(message, wire.mutable_assignment());
    out->set_token(message.token);
    out->set_spec_json(run::ToJson(message.spec));
    out->set_stage(static_cast<uint32_t>(message.stage));
    for (const control::StagePeer& stage : message.stages) {
      v1::StagePeer* peer = out->add_stages();
      peer->set_node(stage.node);
      peer->set_data_address(stage.data_address);
      peer->set_first_op(static_cast<uint32_t>(stage.range.begin));
      peer->set_end_op(static_cast<uint32_t>(stage.range.end));
      peer->set_recompute(stage.recompute);
      peer->set_replica(static_cast<uint32_t>(stage.replica));
      peer->set_micro_batches(static_cast<uint32_t>(stage.micro_batches));
    }
    out->mutable_link_codecs()->Add(message.link_codecs.begin(), message.link_codecs.end());
    out->set_numeric_class(message.numeric_class);
    out->set_start_step(static_cast<uint64_t>(message.start_step));
    if (message.checkpoint) out->set_checkpoint_json(checkpoint::ToJson(*message.checkpoint));
  }
  void operator()(const control::Start& message) {
    v1::Start* out = SetPlace(message, wire.mutable_start());
    for (const std::string& bytes : message.rendezvous) out->add_rendezvous(bytes);
  }
  void operator()(const control::Stop& message) { SetPlace(message, wire.mutable_stop()); }
  void operator()(const control::Abort& message) {
    SetPlace(message, wire.mutable_abort())->set_reason(WireText(message.reason, kTextBytesMax));
  }
  void operator()(const control::StepAcknowledged& message) {
    SetPlace(message, wire.mutable_step_acknowledged())
        ->set_step(static_cast<uint64_t>(message.step));
  }
  void operator()(const control::Released& message) { SetPlace(message, wire.mutable_released()); }

  template <typename Message, typename Wire>
  static Wire* SetPlace(const Message& message, Wire* out) {
    out->set_run(message.run);
    ToWire(message.epoch, out->mutable_epoch());
    return out;
  }
};

}  // namespace

absl::StatusOr<coordinator::NodeConnected> RegisterFromWire(const v1::Register& wire,
                                                            uint64_t session,
                                                            const std::string& address) {
  WireCheck check("Register");
  check.Name("node", wire.node());
  LH_RETURN_IF_ERROR(check.status());
  const ProtocolVersions worker = {wire.protocol().oldest(), wire.protocol().newest(),
                                   WireText(wire.build_version(), 64)};
  LH_RETURN_IF_ERROR(
      CheckProtocol(OwnProtocol(), worker, absl::StrCat("worker '", wire.node(), "'")));
  coordinator::NodeConnected event;
  event.session = session;
  event.address = address;
  event.facts = ReadFacts(wire, check);
  if (wire.has_attachment()) {
    event.attachment = StageMessage<control::Attachment>(wire.attachment(), check);
  }
  LH_RETURN_IF_ERROR(check.status());
  return event;
}

absl::StatusOr<coordinator::Event> FromWire(const v1::WorkerMessage& wire, uint64_t session) {
  switch (wire.message_case()) {
    case v1::WorkerMessage::kHeartbeat: {
      WireCheck check("Heartbeat");
      coordinator::NodeHeartbeat event = {session};
      if (wire.heartbeat().has_card()) event.card = FromWire(wire.heartbeat().card(), check);
      event.leaving = check.Text("leaving", wire.heartbeat().leaving());
      LH_RETURN_IF_ERROR(check.status());
      return event;
    }
    case v1::WorkerMessage::kPreparing: {
      WireCheck check("Preparing");
      coordinator::StagePreparing event = {
          session, {check.Run(wire.preparing().run()), FromWire(wire.preparing().epoch())}};
      LH_RETURN_IF_ERROR(check.status());
      return event;
    }
    case v1::WorkerMessage::kReady: {
      WireCheck check("Ready");
      coordinator::StageReady event = {
          session,
          {check.Run(wire.ready().run()), FromWire(wire.ready().epoch()),
           check.Rendezvous(wire.ready().rendezvous())}};
      LH_RETURN_IF_ERROR(check.status());
      return event;
    }
    case v1::WorkerMessage::kStepReport:
      return ReadStepReport(wire.step_report(), session);
    case v1::WorkerMessage::kShardStored:
      return ReadShardStored(wire.shard_stored(), session);
    case v1::WorkerMessage::kShardFailed:
      return ReadFailure<control::ShardFailed>("ShardFailed", wire.shard_failed(), session);
    case v1::WorkerMessage::kEnded: {
      WireCheck check("Ended");
      coordinator::StageEnded event = {session, StageMessage<control::Ended>(wire.ended(), check)};
      LH_RETURN_IF_ERROR(check.status());
      return event;
    }
    case v1::WorkerMessage::kFailed:
      return ReadFailure<control::Failed>("Failed", wire.failed(), session);
    case v1::WorkerMessage::kRegister:
      return absl::InvalidArgumentError("Register: must come once, as the stream's first message");
    case v1::WorkerMessage::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the worker sent a message that this build does not know; upgrade the coordinator");
}

v1::CoordinatorMessage ToWire(const control::ToWorker& message) {
  v1::CoordinatorMessage wire;
  std::visit(Writer{wire}, message);
  return wire;
}

}  // namespace longhaul::daemon
