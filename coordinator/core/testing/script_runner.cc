#include "coordinator/core/testing/script_runner.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace longhaul::coordinator {
namespace {

// "connect n1 session=1 reason="link down"": a verb, a bare word, and named values.
struct Command {
  std::string verb;
  std::string word;
  std::map<std::string, std::string> values;

  std::string Text(const std::string& key, const std::string& otherwise = "") const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
  int64_t Whole(const std::string& key, int64_t otherwise = 0) const {
    int64_t value = otherwise;
    const auto found = values.find(key);
    if (found != values.end() && !absl::SimpleAtoi(found->second, &value)) value = -999;
    return value;
  }
  uint64_t session() const { return static_cast<uint64_t>(Whole("session")); }
  uint64_t request() const { return static_cast<uint64_t>(Whole("request")); }
  std::string run() const { return Text("run", "first"); }
  Epoch epoch() const;
};

Epoch ParseEpoch(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  Epoch epoch;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &epoch.term) &&
      absl::SimpleAtoi(parts[1], &epoch.number)) {
    return epoch;
  }
  return {};
}

Epoch Command::epoch() const { return ParseEpoch(Text("epoch", "1.1")); }

Command Parse(const std::string& line) {
  Command command;
  std::vector<std::string> tokens(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      tokens.emplace_back();
    } else {
      tokens.back().push_back(c);
    }
  }
  command.verb = tokens[0];
  for (size_t i = 1; i < tokens.size(); ++i) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(tokens[i], absl::MaxSplits('=', 1));
    if (absl::StrContains(tokens[i], "=")) {
      command.values[pair.first] = pair.second;
    } else {
      command.word = tokens[i];
    }
  }
  return command;
}

Event Connect(const Command& c) {
  NodeConnected event;
  event.session = c.session();
  event.facts.profile.name = c.word;
  event.facts.profile.numeric_class = "class-a";
  event.facts.incarnation = static_cast<uint64_t>(c.Whole("incarnation", 1));
  event.facts.data_address = c.Text("data", absl::StrCat(c.word, ":7000"));
  event.address = c.Text("address", absl::StrCat("10.0.0.", c.session(), ":", 100 + c.session()));
  const std::vector<std::string> parts = absl::StrSplit(c.Text("attach"), '/');
  if (parts.size() == 4) {
    control::Attachment attachment{parts[0], ParseEpoch(parts[1]), 0, 0};
    if (absl::SimpleAtoi(parts[2], &attachment.stage) &&
        absl::SimpleAtoi(parts[3], &attachment.step)) {
      event.attachment = attachment;
    }
  }
  return event;
}

Event Start(const Command& c) {
  StartRun event;
  event.request = c.request();
  event.spec.name = c.run();
  event.spec.stages = c.Whole("stages");
  event.spec.model.context = 8;
  event.spec.train.global_batch = 4;
  event.spec.train.steps = c.Whole("steps", 100);
  event.spec.from = c.Text("from");
  if (!event.spec.from.empty()) {
    event.checkpoint.emplace().run = c.run();
    event.checkpoint->shards.push_back({"hash-given", 10, {}});
  }
  return event;
}

Event Planned(const Command& c) {
  Plan plan;
  plan.numeric_classes = {"class-a"};
  // "n1,n2/n3": two stages, the second on two nodes.
  int op = 0;
  for (const absl::string_view stage : absl::StrSplit(c.Text("nodes"), ',')) {
    int replica = 0;
    for (const absl::string_view node : absl::StrSplit(stage, '/')) {
      StagePlacement& group = plan.stages.emplace_back();
      group.node = std::string(node);
      group.replica = replica++;
      group.range = {op, op + 1};
    }
    ++op;
  }
  return PlanMade{c.run(), c.epoch(), std::move(plan)};
}

Event Refused(const Command& c) {
  const absl::StatusCode code = c.Text("code") == "invalid" ? absl::StatusCode::kInvalidArgument
                                                            : absl::StatusCode::kFailedPrecondition;
  return PlanMade{c.run(), c.epoch(), absl::Status(code, c.Text("why"))};
}

Event Stepped(const Command& c) {
  StepReported event;
  event.session = c.session();
  event.said.run = c.run();
  event.said.epoch = c.epoch();
  event.said.stage = static_cast<int>(c.Whole("stage"));
  event.said.stages = static_cast<int>(c.Whole("stages", 2));
  event.said.step = c.Whole("step");
  return event;
}

Event Shard(const Command& c) {
  const int stage = static_cast<int>(c.Whole("stage"));
  const int64_t step = c.Whole("step");
  return ShardStored{
      c.session(), c.run(), c.epoch(),
      stage,       step,    checkpoint::Shard{absl::StrCat("hash-", stage, "-", step), 10, {}}};
}

Event Ended(const Command& c) {
  return StageEnded{c.session(), c.run(), c.epoch(), static_cast<int>(c.Whole("stage")),
                    c.Whole("step")};
}

Event Failed(const Command& c) {
  return StageFailed{
      c.session(),
      c.run(),
      c.epoch(),
      static_cast<int>(c.Whole("stage")),
      c.Whole("step"),
      absl::UnavailableError(c.Text("why")),
      c.Text("damaged"),
      c.values.contains("divergence") ? std::optional(c.Whole("divergence")) : std::nullopt};
}

Event ShardLost(const Command& c) {
  return ShardFailed{c.session(),     c.run(),
                     c.epoch(),       static_cast<int>(c.Whole("stage")),
                     c.Whole("step"), absl::ResourceExhaustedError(c.Text("why"))};
}

Event Resume(const Command& c) {
  ResumeRun event{c.request(), c.run(), static_cast<int>(c.Whole("stages")), std::nullopt};
  if (c.values.contains("step")) event.step = c.Whole("step");
  return event;
}

Event Committed(const Command& c) {
  const std::string error = c.Text("error");
  return ManifestCommitted{c.run(), c.epoch(), c.Whole("step"),
                           error.empty() ? absl::OkStatus() : absl::ResourceExhaustedError(error)};
}

std::optional<Event> MakeEvent(const Command& c) {
  static const auto* const kMakers =
      new std::map<std::string, std::function<Event(const Command&)>>{
          {"connect", Connect},
          {"start", Start},
          {"planned", Planned},
          {"refused", Refused},
          {"step", Stepped},
          {"shard", Shard},
          {"shardfailed", ShardLost},
          {"ended", Ended},
          {"failed", Failed},
          {"committed", Committed},
          {"disconnect",
           [](const Command& c) {
             return NodeDisconnected{c.session(), c.Text("reason")};
           }},
          {"heartbeat",
           [](const Command& c) {
             return NodeHeartbeat{c.session(), std::nullopt, c.Text("leaving")};
           }},
          {"preparing",
           [](const Command& c) {
             return StagePreparing{c.session(), c.run(), c.epoch()};
           }},
          {"ready",
           [](const Command& c) {
             return StageReady{c.session(), c.run(), c.epoch()};
           }},
          {"stop",
           [](const Command& c) {
             return StopRun{c.request(), c.run()};
           }},
          {"resume", Resume},
          {"drain",
           [](const Command& c) {
             return DrainNode{c.request(), c.word};
           }},
      };
  const auto maker = kMakers->find(c.verb);
  if (maker == kMakers->end()) return std::nullopt;
  return maker->second(c);
}

}  // namespace

NodeRecord Durable(const NodeRecord& record) {
  NodeRecord durable;
  durable.facts = record.facts;
  durable.state = record.state;
  durable.reason = record.reason;
  durable.address = record.address;
  return durable;
}

RunRecord Durable(const RunRecord& record) {
  RunRecord durable;
  durable.spec = record.spec;
  durable.sequence = record.sequence;
  durable.state = record.state;
  durable.reason = record.reason;
  durable.epoch = record.epoch;
  durable.plan = record.plan;
  durable.token = record.token;
  durable.numeric_classes = record.numeric_classes;
  durable.stages_requested = record.stages_requested;
  durable.replicas_requested = record.replicas_requested;
  durable.start_step = record.start_step;
  durable.checkpoint = record.checkpoint;
  durable.other_checkpoints = record.other_checkpoints;
  durable.stop_requested = record.stop_requested;
  durable.checkpoint_problem = record.checkpoint_problem;
  durable.step_is_named = record.step_is_named;
  return durable;
}

ScriptRunner::ScriptRunner() {
  CoreOptions options;
  options.token_secret = "secret";
  state_ = Restore(options, {}, {}, now_);
}

std::vector<std::string> ScriptRunner::Run(const std::string& line) {
  const Command command = Parse(line);
  if (command.verb == "restart") return Restart();
  if (command.verb == "show") return Show();
  if (command.verb == "idle") return Idle(command.word);
  if (command.verb == "advance") {
    absl::Duration duration;
    if (!absl::ParseDuration(command.word, &duration)) return {"error: what duration?"};
    now_ += duration;
    return Apply(Tick{});
  }
  const std::optional<Event> event = MakeEvent(command);
  if (!event.has_value()) return {absl::StrCat("error: unknown command ", command.verb)};
  return Apply(*event);
}

std::vector<std::string> ScriptRunner::Idle(const std::string& text) {
  absl::Duration left;
  if (!absl::ParseDuration(text, &left)) return {"error: what duration?"};
  std::vector<std::string> lines;
  while (left > absl::ZeroDuration()) {
    const absl::Duration part = std::min(left, absl::Seconds(5));
    left -= part;
    now_ += part;
    for (const auto& [name, node] : std::map(state_.nodes)) Apply(NodeHeartbeat{node.session});
    for (std::string& line : Apply(Tick{})) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> ScriptRunner::Apply(const Event& event) {
  std::vector<std::string> lines;
  for (const Action& action : Step(state_, event, now_)) {
    lines.push_back(ToText(action));
    if (const auto* persist = std::get_if<PersistRun>(&action)) {
      stored_runs_[persist->run] = Durable(state_.runs.at(persist->run));
    } else if (const auto* node = std::get_if<PersistNode>(&action)) {
      stored_nodes_[node->node] = Durable(state_.nodes.at(node->node));
    } else if (const auto* record = std::get_if<RecordStep>(&action)) {
      const control::StepReport& report = record->report;
      recorded_[report.run][report.epoch][report.stage] = report.step;
    }
  }
  return lines;
}

std::vector<std::string> ScriptRunner::Restart() {
  std::vector<NodeRecord> nodes;
  std::vector<RunRecord> runs;
  for (const auto& [name, record] : stored_nodes_) nodes.push_back(record);
  for (const auto& [name, record] : stored_runs_) {
    runs.push_back(record);
    for (const auto& [stage, step] : recorded_[name][record.epoch]) {
      runs.back().progress.resize(static_cast<size_t>(stage) + 1);
      runs.back().progress.back().step = step;
    }
  }
  state_ = Restore(state_.options, std::move(nodes), std::move(runs), now_);
  return {};
}

std::vector<std::string> ScriptRunner::Show() const {
  std::vector<std::string> lines;
  for (const auto& [name, node] : state_.nodes) {
    lines.push_back(absl::StrCat("node ", name, " ", NodeStateName(node.state), " session ",
                                 node.session, ": ", node.reason));
  }
  for (const auto& [name, run] : state_.runs) {
    lines.push_back(
        absl::StrCat("run ", name, " ", RunStateName(run.state), "/", RunPhaseName(run.phase),
                     " epoch ", ToString(run.epoch), " from step ", run.start_step, " checkpoint ",
                     run.checkpoint.has_value() ? absl::StrCat(run.checkpoint->step) : "none", ": ",
                     run.reason));
    for (const OtherCheckpoint& other : run.other_checkpoints) {
      lines.push_back(
          absl::StrCat("  step ", other.manifest.step, " epoch ", ToString(other.manifest.epoch),
                       other.damage.empty() ? "" : absl::StrCat(" is damaged: ", other.damage)));
    }
  }
  return lines;
}

}  // namespace longhaul::coordinator
