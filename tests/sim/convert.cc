#include "tests/sim/convert.h"

namespace longhaul::sim {
namespace {

worker::ToWorker Convert(const coordinator::AcceptedMessage& m) {
  return worker::Accepted{m.lease, m.heartbeat_every};
}
worker::ToWorker Convert(const coordinator::RefusedMessage& m) {
  return worker::Refused{m.reason, m.retry};
}
worker::ToWorker Convert(const coordinator::AssignmentMessage& m) {
  worker::Assignment assignment;
  assignment.run = m.run;
  assignment.epoch = m.epoch;
  assignment.token = m.token;
  assignment.spec = m.spec;
  assignment.stage = m.stage;
  for (const coordinator::AssignedStage& stage : m.stages) {
    assignment.stages.push_back({stage.node, stage.data_address, stage.range, stage.slots});
  }
  assignment.link_codecs = m.link_codecs;
  assignment.numeric_class = m.numeric_class;
  assignment.start_step = m.start_step;
  assignment.checkpoint = m.checkpoint;
  return assignment;
}
worker::ToWorker Convert(const coordinator::StartMessage& m) {
  return worker::Start{m.run, m.epoch};
}
worker::ToWorker Convert(const coordinator::StopMessage& m) { return worker::Stop{m.run, m.epoch}; }
worker::ToWorker Convert(const coordinator::AbortMessage& m) {
  return worker::Abort{m.run, m.epoch, m.reason};
}
worker::ToWorker Convert(const coordinator::StepAcknowledgedMessage& m) {
  return worker::StepAcknowledged{m.run, m.epoch, m.step};
}
worker::ToWorker Convert(const coordinator::ReleasedMessage& m) {
  return worker::Released{m.run, m.epoch};
}

coordinator::NodeFacts Convert(const worker::NodeFacts& facts) {
  coordinator::NodeFacts converted;
  converted.profile.name = facts.name;
  converted.profile.site = facts.site;
  converted.profile.host = facts.host;
  converted.profile.host_cores = facts.host_cores;
  converted.profile.flops_per_second = facts.flops_per_second;
  converted.profile.bytes_per_second = facts.bytes_per_second;
  converted.profile.threads = facts.threads;
  converted.profile.memory_bytes = facts.memory_bytes;
  converted.profile.numeric_class = facts.numeric_class;
  converted.incarnation = facts.incarnation;
  converted.data_address = facts.data_address;
  converted.version = facts.version;
  return converted;
}

coordinator::Event Convert(uint64_t session, const worker::Register& m) {
  coordinator::NodeConnected event{session, "in-process", Convert(m.facts), std::nullopt};
  if (m.attachment.has_value()) {
    event.attachment = coordinator::Attachment{m.attachment->run, m.attachment->epoch,
                                               m.attachment->stage, m.attachment->step};
  }
  return event;
}
coordinator::Event Convert(uint64_t session, const worker::Heartbeat&) {
  return coordinator::NodeHeartbeat{session};
}
coordinator::Event Convert(uint64_t session, const worker::Ready& m) {
  return coordinator::StageReady{session, m.run, m.epoch};
}
coordinator::Event Convert(uint64_t session, const worker::StepReport& m) {
  coordinator::StepReport report;
  report.run = m.run;
  report.epoch = m.epoch;
  report.stage = m.stage;
  report.stages = m.stages;
  report.step = m.step;
  report.applied = m.applied;
  report.loss = m.loss;
  report.gradient_norm = m.gradient_norm;
  report.learning_rate = m.learning_rate;
  report.tokens = m.tokens;
  report.total_seconds = m.total_seconds;
  report.compute_seconds = m.compute_seconds;
  report.wait_seconds = m.wait_seconds;
  report.has_validation = m.has_validation;
  report.validation_loss = m.validation_loss;
  return coordinator::StepReported{session, report};
}
coordinator::Event Convert(uint64_t session, const worker::ShardStored& m) {
  return coordinator::ShardStored{session, m.run, m.epoch, m.stage, m.step, m.shard};
}
coordinator::Event Convert(uint64_t session, const worker::ShardFailed& m) {
  return coordinator::ShardFailed{session, m.run, m.epoch, m.stage, m.step, m.status};
}
coordinator::Event Convert(uint64_t session, const worker::Ended& m) {
  return coordinator::StageEnded{session, m.run, m.epoch, m.stage, m.step};
}
coordinator::Event Convert(uint64_t session, const worker::Failed& m) {
  return coordinator::StageFailed{session, m.run,    m.epoch,        m.stage,
                                  m.step,  m.status, m.damaged_shard};
}

}  // namespace

worker::ToWorker ToWorkerMessage(const coordinator::WorkerMessage& message) {
  return std::visit([](const auto& m) { return Convert(m); }, message);
}

coordinator::Event ToEvent(uint64_t session, const worker::ToCoordinator& message) {
  return std::visit([session](const auto& m) { return Convert(session, m); }, message);
}

}  // namespace longhaul::sim
