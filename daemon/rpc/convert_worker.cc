#include "daemon/rpc/convert_worker.h"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/rpc/convert_device.h"
#include "daemon/rpc/protocol.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/wire_check.h"

namespace longhaul::daemon {
namespace {

// Sets the fields that most messages share.
template <typename Message, typename Wire>
Wire* SetPlace(const Message& message, Wire* wire) {
  wire->set_run(message.run);
  ToWire(message.epoch, wire->mutable_epoch());
  return wire;
}

template <typename Message, typename Wire>
Wire* SetStagePlace(const Message& message, Wire* wire) {
  SetPlace(message, wire);
  wire->set_stage(static_cast<uint32_t>(message.stage));
  wire->set_step(static_cast<uint64_t>(message.step));
  return wire;
}

struct Writer {
  v1::WorkerMessage& wire;

  void operator()(const worker::Register& message) {
    v1::Register* out = wire.mutable_register_();
    const ProtocolVersions own = OwnProtocol();
    out->mutable_protocol()->set_oldest(own.oldest);
    out->mutable_protocol()->set_newest(own.newest);
    const worker::NodeFacts& facts = message.facts;
    out->set_build_version(facts.version);
    out->set_node(facts.name);
    out->set_site(facts.site);
    out->set_host(facts.host);
    out->set_incarnation(facts.incarnation);
    out->set_data_address(facts.data_address);
    out->set_trusted_network(facts.trusted_network);
    v1::Device* device = out->mutable_device();
    device->set_numeric_class(facts.numeric_class);
    device->set_threads(static_cast<uint32_t>(facts.threads));
    device->set_host_cores(static_cast<uint32_t>(facts.host_cores));
    device->set_memory_bytes(facts.memory_bytes);
    device->set_process_bytes(facts.process_bytes);
    device->set_flops_per_second(facts.flops_per_second);
    device->set_bytes_per_second(facts.bytes_per_second);
    device->set_bfloat16_flops_per_second(facts.bfloat16_flops_per_second);
    device->set_device_kind(facts.device_kind);
    device->set_device_name(WireText(facts.device_name, 256));
    if (facts.card) ToWire(*facts.card, device->mutable_card());
    if (message.attachment) SetStagePlace(*message.attachment, out->mutable_attachment());
  }
  void operator()(const worker::Heartbeat& message) {
    v1::Heartbeat* out = wire.mutable_heartbeat();
    if (message.card) ToWire(*message.card, out->mutable_card());
    out->set_leaving(WireText(message.leaving, kTextBytesMax));
  }
  void operator()(const worker::Preparing& message) { SetPlace(message, wire.mutable_preparing()); }
  void operator()(const worker::Ready& message) {
    SetPlace(message, wire.mutable_ready())->set_rendezvous(message.rendezvous);
  }
  void operator()(const worker::StepReport& message) {
    v1::StepReport* out = SetStagePlace(message, wire.mutable_step_report());
    out->set_stages(static_cast<uint32_t>(message.stages));
    out->set_applied(message.applied);
    out->set_loss(message.loss);
    out->set_gradient_norm(message.gradient_norm);
    out->set_learning_rate(message.learning_rate);
    out->set_tokens(static_cast<uint64_t>(message.tokens));
    out->set_total_seconds(message.total_seconds);
    out->set_compute_seconds(message.compute_seconds);
    out->set_wait_seconds(message.wait_seconds);
    out->set_has_validation(message.has_validation);
    out->set_validation_loss(message.validation_loss);
  }
  void operator()(const worker::ShardStored& message) {
    ToWire(message.shard, SetStagePlace(message, wire.mutable_shard_stored())->mutable_shard());
  }
  void operator()(const worker::ShardFailed& message) {
    SetStatus(message.status, SetStagePlace(message, wire.mutable_shard_failed()));
  }
  void operator()(const worker::Ended& message) { SetStagePlace(message, wire.mutable_ended()); }
  void operator()(const worker::Failed& message) {
    SetStatus(message.status, SetStagePlace(message, wire.mutable_failed()));
    wire.mutable_failed()->set_damaged_shard(message.damaged_shard);
    if (message.divergence) wire.mutable_failed()->set_divergence(*message.divergence);
  }

  template <typename Wire>
  static void SetStatus(const absl::Status& status, Wire* out) {
    out->set_code(status.raw_code());
    out->set_message(WireText(status.message(), kTextBytesMax));
  }
};

// Run and epoch of a directive, checked.
template <typename Message, typename Wire>
Message PlaceOf(const Wire& wire, WireCheck& check) {
  Message message;
  message.run = check.Run(wire.run());
  message.epoch = FromWire(wire.epoch());
  return message;
}

absl::Duration WireDuration(WireCheck& check, absl::string_view field, int64_t milliseconds) {
  constexpr uint64_t kDayMilliseconds = 24 * 3600 * 1000;
  const int64_t size = check.Size(field, milliseconds);
  return absl::Milliseconds(check.Count(field, static_cast<uint64_t>(size), kDayMilliseconds));
}

absl::StatusOr<worker::ToWorker> ReadAccepted(const v1::Accepted& wire) {
  const ProtocolVersions coordinator = {wire.protocol().oldest(), wire.protocol().newest(),
                                        WireText(wire.build_version(), 64)};
  LH_RETURN_IF_ERROR(CheckProtocol(OwnProtocol(), coordinator, "the coordinator"));
  WireCheck check("Accepted");
  worker::Accepted message;
  message.lease = WireDuration(check, "lease", wire.lease_milliseconds());
  message.heartbeat_every = WireDuration(check, "heartbeat", wire.heartbeat_milliseconds());
  if (message.heartbeat_every < absl::Milliseconds(10)) {
    check.Also(absl::InvalidArgumentError("heartbeat: less than 10 ms"));
  }
  LH_RETURN_IF_ERROR(check.status());
  return message;
}

void ReadStages(const v1::Assignment& wire, WireCheck& check, worker::Assignment& message) {
  check.Count("stages", static_cast<uint64_t>(wire.stages_size()), kStagesMax);
  check.Count("link_codecs", static_cast<uint64_t>(wire.link_codecs_size()), kStagesMax);
  if (!check.status().ok()) return;
  for (const v1::StagePeer& peer : wire.stages()) {
    worker::StagePeer& stage = message.stages.emplace_back();
    stage.node = check.Name("node", peer.node());
    stage.data_address = check.DialAddress("data_address", peer.data_address());
    stage.range.begin = static_cast<int>(check.Count("first_op", peer.first_op(), 1 << 20));
    stage.range.end = static_cast<int>(check.Count("end_op", peer.end_op(), 1 << 20));
    stage.recompute = peer.recompute();
    stage.replica = static_cast<int>(check.Count("replica", peer.replica(), kReplicasMax - 1));
    stage.micro_batches =
        static_cast<int>(check.Count("micro_batches", peer.micro_batches(), 1 << 30));
  }
  for (const std::string& codec : wire.link_codecs()) {
    message.link_codecs.push_back(check.Name("codec", codec));
  }
  if (wire.stage() >= static_cast<uint32_t>(wire.stages_size())) {
    check.Also(absl::InvalidArgumentError("stage: not one of the stages listed"));
  }
}

absl::StatusOr<worker::ToWorker> ReadAssignment(const v1::Assignment& wire) {
  WireCheck check("Assignment");
  auto message = PlaceOf<worker::Assignment>(wire, check);
  message.token = check.Text("token", wire.token());
  message.stage = check.Stage(wire.stage());
  message.numeric_class = check.Text("numeric_class", wire.numeric_class());
  message.start_step = check.Step(wire.start_step());
  check.Text("spec_json", wire.spec_json(), kJsonBytesMax);
  check.Text("checkpoint_json", wire.checkpoint_json(), kJsonBytesMax);
  ReadStages(wire, check, message);
  LH_RETURN_IF_ERROR(check.status());
  auto spec = run::FromJson(wire.spec_json());
  if (!spec.ok()) return Annotate(spec.status(), "Assignment: spec_json");
  message.spec = *std::move(spec);
  if (!wire.checkpoint_json().empty()) {
    auto manifest = checkpoint::ManifestFromJson(wire.checkpoint_json());
    if (!manifest.ok()) return Annotate(manifest.status(), "Assignment: checkpoint_json");
    message.checkpoint = *std::move(manifest);
  }
  return message;
}

template <typename Message, typename Wire>
absl::StatusOr<worker::ToWorker> ReadPlace(absl::string_view name, const Wire& wire) {
  WireCheck check(name);
  auto message = PlaceOf<Message>(wire, check);
  if constexpr (requires { message.reason; }) {
    message.reason = check.Text("reason", wire.reason());
  }
  if constexpr (requires { message.step; }) message.step = check.Step(wire.step());
  if constexpr (requires { message.rendezvous; }) {
    check.Count("rendezvous", static_cast<uint64_t>(wire.rendezvous_size()), kReplicasMax);
    for (const std::string& bytes : wire.rendezvous()) {
      if (!check.status().ok()) break;
      message.rendezvous.push_back(check.Rendezvous(bytes));
    }
  }
  LH_RETURN_IF_ERROR(check.status());
  return message;
}

}  // namespace

v1::WorkerMessage ToWire(const worker::ToCoordinator& message) {
  v1::WorkerMessage wire;
  std::visit(Writer{wire}, message);
  return wire;
}

absl::StatusOr<worker::ToWorker> FromWire(const v1::CoordinatorMessage& wire) {
  switch (wire.message_case()) {
    case v1::CoordinatorMessage::kAccepted:
      return ReadAccepted(wire.accepted());
    case v1::CoordinatorMessage::kRefused:
      return worker::Refused{absl::Status(ErrorCodeFromWire(wire.refused().code()),
                                          WireText(wire.refused().message(), kTextBytesMax)),
                             wire.refused().retry()};
    case v1::CoordinatorMessage::kAssignment:
      return ReadAssignment(wire.assignment());
    case v1::CoordinatorMessage::kStart:
      return ReadPlace<worker::Start>("Start", wire.start());
    case v1::CoordinatorMessage::kStop:
      return ReadPlace<worker::Stop>("Stop", wire.stop());
    case v1::CoordinatorMessage::kAbort:
      return ReadPlace<worker::Abort>("Abort", wire.abort());
    case v1::CoordinatorMessage::kStepAcknowledged:
      return ReadPlace<worker::StepAcknowledged>("StepAcknowledged", wire.step_acknowledged());
    case v1::CoordinatorMessage::kReleased:
      return ReadPlace<worker::Released>("Released", wire.released());
    case v1::CoordinatorMessage::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the coordinator sent a message that this build does not know; upgrade this worker");
}

}  // namespace longhaul::daemon
