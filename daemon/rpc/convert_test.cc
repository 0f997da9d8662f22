// Both halves of the control stream's conversion against each other: what a worker says arrives at
// the coordinator as it was meant, and the other way round.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/sha256.h"
#include "daemon/rpc/convert_coordinator.h"
#include "daemon/rpc/convert_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/test_spec.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSession = 42;
constexpr Epoch kEpoch = {3, 17};

template <typename Event>
Event Arrives(const worker::ToCoordinator& message) {
  auto event = FromWire(ToWire(message), kSession);
  EXPECT_TRUE(event.ok()) << event.status();
  return std::get<Event>(*std::move(event));
}

template <typename Message>
Message Hears(const control::ToWorker& message) {
  auto arrived = FromWire(ToWire(message));
  EXPECT_TRUE(arrived.ok()) << arrived.status();
  return std::get<Message>(*std::move(arrived));
}

worker::Register MakeRegister() {
  worker::Register message;
  message.facts = {.name = "b1",
                   .site = "berlin",
                   .host = "host-1",
                   .incarnation = 9,
                   .data_address = "127.0.0.1:7171",
                   .version = "0.1.0",
                   .numeric_class = "cpu-x",
                   .threads = 4,
                   .host_cores = 8,
                   .memory_bytes = int64_t{5} << 30,
                   .process_bytes = 44 << 20,
                   .flops_per_second = 1.5e10,
                   .bfloat16_flops_per_second = 3e10,
                   .bytes_per_second = 2.5e9,
                   .device_kind = "cuda",
                   .device_name = "NVIDIA H100",
                   .card = control::CardFacts{"9.0", "580.1 (CUDA 13.0)", "GPU-1", "0000:17:00.0",
                                              int64_t{80} << 30}};
  message.attachment = worker::Attachment{"first", kEpoch, 2, 77};
  return message;
}

TEST(WorkerToCoordinator, Register) {
  const auto event =
      RegisterFromWire(ToWire(MakeRegister()).register_(), kSession, "ipv4:10.0.0.1:5");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->session, kSession);
  EXPECT_EQ(event->address, "ipv4:10.0.0.1:5");
  const coordinator::NodeFacts& facts = event->facts;
  EXPECT_EQ(facts.profile.name, "b1");
  EXPECT_EQ(facts.profile.site, "berlin");
  EXPECT_EQ(facts.profile.host, "host-1");
  EXPECT_EQ(facts.incarnation, 9u);
  EXPECT_EQ(facts.data_address, "127.0.0.1:7171");
  EXPECT_EQ(facts.version, "0.1.0");
  EXPECT_EQ(facts.profile.numeric_class, "cpu-x");
  EXPECT_EQ(facts.profile.threads, 4);
  EXPECT_EQ(facts.profile.host_cores, 8);
  EXPECT_EQ(facts.profile.memory_bytes, int64_t{5} << 30);
  EXPECT_EQ(facts.profile.process_bytes, 44 << 20);
  EXPECT_EQ(facts.profile.flops_per_second, 1.5e10);
  EXPECT_EQ(facts.profile.bytes_per_second, 2.5e9);
  EXPECT_EQ(facts.profile.bfloat16_flops_per_second, 3e10);
  EXPECT_EQ(facts.profile.device_kind, coordinator::DeviceKind::kCuda);
  EXPECT_EQ(facts.profile.device_uuid, "GPU-1");
  EXPECT_EQ(facts.profile.device_memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(facts.profile.device_name, "NVIDIA H100");
  EXPECT_EQ(facts.card, MakeRegister().facts.card);
  ASSERT_TRUE(event->attachment.has_value());
  EXPECT_EQ(event->attachment->run, "first");
  EXPECT_EQ(event->attachment->epoch, kEpoch);
  EXPECT_EQ(event->attachment->stage, 2);
  EXPECT_EQ(event->attachment->step, 77);
  worker::Register idle = MakeRegister();
  idle.attachment.reset();
  EXPECT_FALSE(RegisterFromWire(ToWire(idle).register_(), kSession, "a")->attachment.has_value());
}

// What a card does not tell stays absent; a build that knows no devices has a processor.
TEST(WorkerToCoordinator, Devices) {
  control::CardReadings readings;
  readings.temperature_celsius = -3;
  readings.uncorrected_errors = 0;
  EXPECT_EQ(Arrives<coordinator::NodeHeartbeat>(worker::Heartbeat{readings}).card, readings);
  readings = {71, 650.5, 1980, 2619, 0.97, 2, int64_t{70} << 30};
  EXPECT_EQ(Arrives<coordinator::NodeHeartbeat>(worker::Heartbeat{readings}).card, readings);
  EXPECT_FALSE(Arrives<coordinator::NodeHeartbeat>(worker::Heartbeat{}).card.has_value());
  EXPECT_EQ(Arrives<coordinator::NodeHeartbeat>(worker::Heartbeat{{}, "bad card"}).leaving,
            "bad card");
  v1::WorkerMessage old = ToWire(MakeRegister());
  old.mutable_register_()->mutable_device()->clear_device_kind();
  EXPECT_EQ(RegisterFromWire(old.register_(), kSession, "a")->facts.profile.device_kind,
            coordinator::DeviceKind::kCpu);
}

TEST(WorkerToCoordinator, Reports) {
  EXPECT_EQ(Arrives<coordinator::NodeHeartbeat>(worker::Heartbeat{}).session, kSession);
  const auto preparing = Arrives<coordinator::StagePreparing>(worker::Preparing{"first", kEpoch});
  EXPECT_EQ(preparing.said.run, "first");
  EXPECT_EQ(preparing.said.epoch, kEpoch);
  const auto ready = Arrives<coordinator::StageReady>(worker::Ready{"first", kEpoch});
  EXPECT_EQ(ready.said.run, "first");
  EXPECT_EQ(ready.said.epoch, kEpoch);
  const std::string bytes("\0\xff", 2);
  EXPECT_EQ(Arrives<coordinator::StageReady>(worker::Ready{"r", kEpoch, bytes}).said.rendezvous,
            bytes);

  worker::StepReport step = {"first", kEpoch, 1,   4,   12,   false, 3.25, 0.5,
                             1e-3,    512,    2.0, 1.5, 0.25, true,  2.75};
  const auto report = Arrives<coordinator::StepReported>(step).said;
  EXPECT_EQ(report.run, "first");
  EXPECT_EQ(report.epoch, kEpoch);
  EXPECT_EQ(report.stage, 1);
  EXPECT_EQ(report.stages, 4);
  EXPECT_EQ(report.step, 12);
  EXPECT_FALSE(report.applied);
  EXPECT_EQ(report.loss, 3.25);
  EXPECT_EQ(report.gradient_norm, 0.5);
  EXPECT_EQ(report.learning_rate, 1e-3);
  EXPECT_EQ(report.tokens, 512);
  EXPECT_EQ(report.total_seconds, 2.0);
  EXPECT_EQ(report.compute_seconds, 1.5);
  EXPECT_EQ(report.wait_seconds, 0.25);
  EXPECT_TRUE(report.has_validation);
  EXPECT_EQ(report.validation_loss, 2.75);
  step.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Arrives<coordinator::StepReported>(step).said.loss));
}

TEST(WorkerToCoordinator, ShardsEndsAndFailures) {
  const checkpoint::Shard shard = {Sha256Hex("x"), 123, {"wte", "h.0.ln_1.weight"}};
  const auto stored =
      Arrives<coordinator::ShardStored>(worker::ShardStored{"first", kEpoch, 1, 100, shard});
  EXPECT_EQ(stored.said.shard, shard);
  EXPECT_EQ(stored.said.step, 100);
  const auto lost = Arrives<coordinator::ShardFailed>(
      worker::ShardFailed{"first", kEpoch, 1, 100, absl::ResourceExhaustedError("disk full")});
  EXPECT_EQ(lost.said.status, absl::ResourceExhaustedError("disk full"));
  const auto ended = Arrives<coordinator::StageEnded>(worker::Ended{"first", kEpoch, 3, 200});
  EXPECT_EQ(ended.said.stage, 3);
  EXPECT_EQ(ended.said.step, 200);
  const auto failed = Arrives<coordinator::StageFailed>(
      worker::Failed{"first", kEpoch, 3, 8, absl::DeadlineExceededError("no frame from b2\xFF")});
  EXPECT_EQ(failed.said.status, absl::DeadlineExceededError("no frame from b2?"));
  EXPECT_EQ(failed.said.damaged_shard, "");
  EXPECT_EQ(failed.said.divergence, std::nullopt);
  const auto damaged = Arrives<coordinator::StageFailed>(
      worker::Failed{"first", kEpoch, 3, 8, absl::DataLossError("bad"), shard.sha256});
  EXPECT_EQ(damaged.said.damaged_shard, shard.sha256);
  const auto diverged = Arrives<coordinator::StageFailed>(
      worker::Failed{"first", kEpoch, 3, 8, absl::FailedPreconditionError("inf"), "", -2});
  EXPECT_EQ(diverged.said.divergence, -2);
}

TEST(CoordinatorToWorker, Directives) {
  const auto accepted =
      Hears<control::Accepted>(control::Accepted{absl::Seconds(10), absl::Milliseconds(1500)});
  EXPECT_EQ(accepted.lease, absl::Seconds(10));
  EXPECT_EQ(accepted.heartbeat_every, absl::Milliseconds(1500));
  const auto refused =
      Hears<control::Refused>(control::Refused{absl::AlreadyExistsError("two b1"), false});
  EXPECT_EQ(refused.reason, absl::AlreadyExistsError("two b1"));
  EXPECT_FALSE(refused.retry);
  EXPECT_EQ(Hears<control::Start>(control::Start{"r", kEpoch}).epoch, kEpoch);
  const std::vector<std::string> rendezvous = {std::string("\0\xff", 2), "b"};
  EXPECT_EQ(Hears<control::Start>(control::Start{"r", kEpoch, rendezvous}).rendezvous, rendezvous);
  EXPECT_EQ(Hears<control::Stop>(control::Stop{"r", kEpoch}).run, "r");
  EXPECT_EQ(Hears<control::Abort>(control::Abort{"r", kEpoch, "why"}).reason, "why");
  EXPECT_EQ(Hears<control::StepAcknowledged>(control::StepAcknowledged{"r", kEpoch, 31}).step, 31);
  EXPECT_EQ(Hears<control::Released>(control::Released{"r", kEpoch}).epoch, kEpoch);
}

control::Assignment MakeAssignment() {
  control::Assignment message;
  message.run = "first";
  message.epoch = kEpoch;
  message.token = "secret";
  message.spec = run::ExampleSpec();
  message.stage = 1;
  message.stages = {{"b1", "127.0.0.1:1", {0, 10}, true},
                    {"b2", "[::1]:2", {10, 30}, false, 0, 5},
                    {"b3", "127.0.0.1:3", {10, 30}, false, 1, 3}};
  message.link_codecs = {"zstd"};
  message.numeric_class = "cpu-x";
  message.start_step = 100;
  message.checkpoint =
      checkpoint::Manifest{"first", {3, 16}, 100, 409600, "cpu-x", {{Sha256Hex("s"), 5, {"wte"}}}};
  return message;
}

TEST(CoordinatorToWorker, Assignment) {
  const control::Assignment sent = MakeAssignment();
  const auto message = Hears<control::Assignment>(sent);
  EXPECT_EQ(message.run, "first");
  EXPECT_EQ(message.epoch, kEpoch);
  EXPECT_EQ(message.token, "secret");
  EXPECT_EQ(message.spec, sent.spec);
  EXPECT_EQ(message.stage, 1);
  ASSERT_EQ(message.stages.size(), 3u);
  EXPECT_EQ(message.stages[2].replica, 1);
  EXPECT_EQ(message.stages[1].micro_batches, 5);
  EXPECT_EQ(message.stages[0].node, "b1");
  EXPECT_EQ(message.stages[0].range, (model::OpRange{0, 10}));
  EXPECT_TRUE(message.stages[0].recompute);
  EXPECT_FALSE(message.stages[1].recompute);
  EXPECT_EQ(message.stages[1].data_address, "[::1]:2");
  EXPECT_THAT(message.link_codecs, testing::ElementsAre("zstd"));
  EXPECT_EQ(message.numeric_class, "cpu-x");
  EXPECT_EQ(message.start_step, 100);
  EXPECT_EQ(message.checkpoint, sent.checkpoint);
}

struct Hostile {
  std::function<void(v1::WorkerMessage&)> change;
  std::string part;
};

TEST(WorkerToCoordinator, HostileReportsAreRefusedByName) {
  const std::vector<Hostile> cases = {
      {[](auto& m) { m.mutable_step_report()->set_run("../x"); }, "StepReport: run"},
      {[](auto& m) { m.mutable_step_report()->set_stage(4000000000u); }, "StepReport: stage"},
      {[](auto& m) { m.mutable_step_report()->set_stages(0); }, "stage: not below stages"},
      {[](auto& m) { m.mutable_step_report()->set_step(UINT64_MAX); }, "StepReport: step"},
      {[](auto& m) { m.mutable_step_report()->set_step(0); }, "StepReport: step"},
      {[](auto& m) { m.mutable_step_report()->set_tokens(UINT64_MAX); }, "StepReport: tokens"},
      {[](auto& m) { m.mutable_step_report()->set_total_seconds(-1); }, "total_seconds"},
      {[](auto& m) { m.mutable_step_report()->set_wait_seconds(NAN); }, "wait_seconds"},
      {[](auto& m) { m.mutable_shard_stored()->set_run("first"); }, "ShardStored: shard"},
      {[](auto& m) { m.mutable_failed()->set_run("a b"); }, "Failed: run"},
      {[](auto& m) { m.mutable_preparing()->set_run("a b"); }, "Preparing: run"},
      {[](auto& m) {
         m.mutable_failed()->set_run("first");
         m.mutable_failed()->set_message(std::string(100000, 'x'));
       },
       "Failed: message"},
      {[](auto& m) { m.mutable_register_(); }, "must come once"},
      {[](auto& m) { m.clear_message(); }, "does not know"},
  };
  for (const Hostile& hostile : cases) {
    worker::StepReport report;
    report.run = "first";
    report.stages = 1;
    report.step = 1;
    v1::WorkerMessage wire = ToWire(report);
    hostile.change(wire);
    const auto event = FromWire(wire, kSession);
    EXPECT_EQ(event.status().code(), absl::StatusCode::kInvalidArgument) << hostile.part;
    EXPECT_THAT(std::string(event.status().message()), HasSubstr(hostile.part));
  }
}

TEST(WorkerToCoordinator, HostileRegistersAreRefusedByName) {
  const std::vector<std::pair<std::function<void(v1::Register&)>, std::string>> cases = {
      {[](v1::Register& r) { r.set_node("b 1"); }, "node"},
      {[](v1::Register& r) { r.set_site(""); }, "site"},
      {[](v1::Register& r) { r.set_data_address("0.0.0.0:0"); }, "data_address"},
      {[](v1::Register& r) { r.set_host(std::string(1000, 'h')); }, "host"},
      {[](v1::Register& r) { r.mutable_device()->set_threads(0); }, "threads"},
      {[](v1::Register& r) { r.mutable_device()->set_threads(4000000000u); }, "threads"},
      {[](v1::Register& r) { r.mutable_device()->set_memory_bytes(-1); }, "memory_bytes"},
      {[](v1::Register& r) { r.mutable_device()->set_flops_per_second(-INFINITY); }, "flops"},
      {[](v1::Register& r) { r.mutable_device()->set_device_kind("tpu"); }, "device_kind: 'tpu'"},
      {[](v1::Register& r) { r.mutable_device()->set_device_name(std::string(300, 'n')); },
       "device_name"},
      {[](v1::Register& r) { r.mutable_device()->set_bfloat16_flops_per_second(NAN); },
       "bfloat16_flops"},
      {[](v1::Register& r) { r.mutable_device()->mutable_card()->set_uuid(std::string(300, 'u')); },
       "uuid"},
      {[](v1::Register& r) { r.mutable_device()->mutable_card()->set_memory_bytes(-1); },
       "card memory_bytes"},
      {[](v1::Register& r) { r.mutable_attachment()->set_run(""); }, "run"},
      {[](v1::Register& r) { r.mutable_protocol()->set_oldest(99); }, "control protocol 99"},
      {[](v1::Register& r) { r.clear_protocol(); }, "control protocol 0 to 0"},
  };
  for (const auto& [change, part] : cases) {
    v1::Register wire = ToWire(MakeRegister()).register_();
    change(wire);
    const auto event = RegisterFromWire(wire, kSession, "a");
    ASSERT_FALSE(event.ok()) << part;
    EXPECT_THAT(std::string(event.status().message()), HasSubstr(part));
  }
}

TEST(CoordinatorToWorker, HostileAssignmentsAreRefusedByName) {
  const std::vector<std::pair<std::function<void(v1::Assignment&)>, std::string>> cases = {
      {[](v1::Assignment& a) { a.set_stage(3); }, "stage"},
      {[](v1::Assignment& a) { a.clear_stages(); }, "stage"},
      {[](v1::Assignment& a) { a.mutable_stages(0)->set_replica(64); }, "replica"},
      {[](v1::Assignment& a) { a.mutable_stages(0)->set_micro_batches(4000000000u); },
       "micro_batches"},
      {[](v1::Assignment& a) { a.mutable_stages(0)->set_end_op(4000000000u); }, "end_op"},
      {[](v1::Assignment& a) { a.mutable_stages(0)->set_data_address("x"); }, "data_address"},
      {[](v1::Assignment& a) { a.add_link_codecs("../zstd"); }, "codec"},
      {[](v1::Assignment& a) { a.set_spec_json("{"); }, "spec_json"},
      {[](v1::Assignment& a) { a.set_spec_json(std::string(5 << 20, ' ')); }, "spec_json"},
      {[](v1::Assignment& a) { a.set_checkpoint_json("[]"); }, "checkpoint_json"},
      {[](v1::Assignment& a) { a.set_start_step(UINT64_MAX); }, "step"},
      {[](v1::Assignment& a) {
         for (int i = 0; i < 2000; ++i) *a.add_stages() = a.stages(0);
       },
       "stages"},
  };
  for (const auto& [change, part] : cases) {
    v1::CoordinatorMessage wire = ToWire(MakeAssignment());
    change(*wire.mutable_assignment());
    const auto message = FromWire(wire);
    EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument) << part;
    EXPECT_THAT(std::string(message.status().message()), HasSubstr(part));
  }
  v1::CoordinatorMessage accepted;
  accepted.mutable_accepted()->mutable_protocol()->set_oldest(9);
  accepted.mutable_accepted()->mutable_protocol()->set_newest(9);
  EXPECT_EQ(FromWire(accepted).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(FromWire(v1::CoordinatorMessage()).ok());
}

TEST(CoordinatorToWorker, RendezvousAreBounded) {
  v1::CoordinatorMessage start = ToWire(control::ToWorker(control::Start{"r", kEpoch, {}}));
  for (int i = 0; i < 65; ++i) start.mutable_start()->add_rendezvous("x");
  EXPECT_EQ(FromWire(start).status().code(), absl::StatusCode::kInvalidArgument);
  start.mutable_start()->clear_rendezvous();
  start.mutable_start()->add_rendezvous(std::string(16385, 'x'));
  EXPECT_EQ(FromWire(start).status().code(), absl::StatusCode::kInvalidArgument);
  v1::WorkerMessage ready =
      ToWire(worker::ToCoordinator(worker::Ready{"r", kEpoch, std::string(16385, 'x')}));
  EXPECT_EQ(FromWire(ready, kSession).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::daemon
