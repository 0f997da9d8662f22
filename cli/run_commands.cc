// longhaul run start|ls|show|watch|stop|resume
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/initial_shards.h"
#include "checkpoint/manifest.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/run_views.h"
#include "cli/submit.h"

namespace longhaul::cli {
namespace {

constexpr const char kFollowHelp[] =
    "follow the run to its end; exits 0 if it is done, and 1 with the reason if it was stopped, "
    "interrupted or failed";

struct RunOptions {
  std::string file;
  std::string run;
  bool wait = false;
  uint64_t after = 0;
  ResumeChanges changes;
};

// Prints an answer of the coordinator in words or as {"run","text"}.
void PrintAnswer(const Context& context, const std::string& run, const std::string& text) {
  if (context.json()) {
    PrintJsonLine({{"run", run}, {"text", text}});
  } else {
    Print(absl::StrCat(Printable(text), "\n"));
  }
}

absl::Status Upload(Client& client, const Submission& submission) {
  for (const Submission::Upload& upload : submission.uploads) {
    std::unique_ptr<ProgressBar> bar;
    LH_RETURN_IF_ERROR(client.Upload(upload.index, upload.path, [&](uint64_t done, uint64_t total) {
      if (bar == nullptr) bar = std::make_unique<ProgressBar>("upload", total, "MiB");
      bar->Update(done, "");
    }));
  }
  return absl::OkStatus();
}

// The shards of given weights; their manifest as JSON, or nothing where weights are drawn.
absl::StatusOr<std::string> UploadWeights(Client& client, const Submission& submission) {
  if (!submission.weights.has_value()) return "";
  const checkpoint::ModelWeights& weights = *submission.weights;
  ProgressBar bar("weights", weights.parameters.size(), "tensors");
  uint64_t done = 0;
  LH_ASSIGN_OR_RETURN(
      const checkpoint::Manifest manifest,
      checkpoint::StoreInitialShards(submission.spec.name, weights,
                                     [&](const checkpoint::EncodedShard& encoded) -> absl::Status {
                                       LH_RETURN_IF_ERROR(client.StoreShard(encoded));
                                       done += encoded.shard.parameters.size();
                                       bar.Update(done, "");
                                       return absl::OkStatus();
                                     }));
  return checkpoint::ToJson(manifest);
}

int Start(Context& context, const RunOptions& options) {
  auto submission = PrepareSubmission(options.file);
  if (!submission.ok()) return Fail(submission.status());
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  if (absl::Status status = Upload(**client, *submission); !status.ok()) return Fail(status);
  const std::string& name = submission->spec.name;
  auto checkpoint = UploadWeights(**client, *submission);
  if (!checkpoint.ok()) return Fail(checkpoint.status());
  uint64_t data_bytes = 0;
  for (const Submission::Upload& upload : submission->uploads) data_bytes += upload.index.bytes;
  auto text = (*client)->StartRun(run::ToJson(submission->spec), *checkpoint, data_bytes);
  if (!text.ok()) return Fail(text.status());
  if (!options.wait || !context.json()) PrintAnswer(context, name, *text);
  return options.wait ? FollowRun(context, *std::move(client), name, {}) : kExitDone;
}

int List(Context& context) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto runs = (*client)->ListRuns();
  if (!runs.ok()) return Fail(runs.status());
  if (!context.json()) {
    PrintRunTable(*runs);
    return kExitDone;
  }
  for (const v1::RunSummary& run : runs->runs()) PrintJsonLine(RunLineToJson(run));
  return kExitDone;
}

int Show(Context& context, const RunOptions& options) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto run = (*client)->ShowRun(options.run);
  if (!run.ok()) return Fail(run.status());
  if (context.json()) {
    PrintJsonLine(RunToJson(*run));
  } else {
    PrintRun(*run);
  }
  return kExitDone;
}

int Watch(Context& context, const RunOptions& options) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  return FollowRun(context, *std::move(client), options.run, {.after_step = options.after});
}

int Stop(Context& context, const RunOptions& options) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto text = (*client)->StopRun(options.run);
  if (!text.ok()) return Fail(text.status());
  PrintAnswer(context, options.run, *text);
  if (!options.wait) return kExitDone;
  // Only the end matters, not the steps on the way.
  auto run = (*client)->ShowRun(options.run);
  if (absl::IsNotFound(run.status())) return kExitDone;  // it was not planned yet
  if (!run.ok()) return Fail(run.status());
  return FollowRun(
      context, *std::move(client), options.run,
      {.after_step = run->steps(), .good = GoodEnd::kDoneOrStopped, .told = run->reason()});
}

int Resume(Context& context, const RunOptions& options) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto before = (*client)->ShowRun(options.run);
  if (!before.ok()) return Fail(before.status());
  auto text = (*client)->ResumeRun(options.run, options.changes);
  if (!text.ok()) return Fail(text.status());
  if (!options.wait || !context.json()) PrintAnswer(context, options.run, *text);
  if (!options.wait) return kExitDone;
  const uint64_t after = options.changes.step.value_or(before->checkpoint_step());
  return FollowRun(context, *std::move(client), options.run, {.after_step = after});
}

}  // namespace

void RegisterRunCommands(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* run = app.add_subcommand("run", "start, follow, stop and resume runs");
  run->require_subcommand(1);
  auto options = std::make_shared<RunOptions>();
  const auto add = [&](const char* name, const char* help, auto action) {
    CLI::App* command = run->add_subcommand(name, help);
    AddCommonOptions(*command, context);
    command->callback([&chosen, options, action] {
      chosen = [options, action](Context& c) { return action(c, *options); };
    });
    return command;
  };
  CLI::App* start = add("start", "upload the data and start a run", Start);
  start->add_option("file", options->file, "the run's file (YAML)")->required();
  start->add_flag("--wait", options->wait, kFollowHelp);

  add("ls", "list all runs", [](Context& c, const RunOptions&) { return List(c); });

  CLI::App* show = add("show", "state, reason, stages and plan of a run", Show);
  show->add_option("run", options->run, "name of the run")->required();

  CLI::App* watch = add("watch", kFollowHelp, Watch);
  watch->add_option("run", options->run, "name of the run")->required();
  watch->add_option("--after", options->after, "begin after this step")->check(WholeNumber());

  CLI::App* stop = add("stop", "stop after the current step, with a checkpoint", Stop);
  stop->add_option("run", options->run, "name of the run")->required();
  stop->add_flag("--wait", options->wait,
                 "wait until it has stopped; exits 0 if it is stopped or done, else 1");

  CLI::App* resume = add("resume", "continue from a checkpoint", Resume);
  resume->add_option("run", options->run, "name of the run")->required();
  resume->add_option("--stages", options->changes.stages, "number of stages (as before)")
      ->check(Within(1, 1024));
  resume->add_option("--replicas", options->changes.replicas, "replicas of every stage (as before)")
      ->check(Within(1, 64));
  resume
      ->add_option("--step", options->changes.step,
                   "step of the checkpoint to go back to, 0: the beginning (the newest)")
      ->check(WholeNumber());
  resume->add_flag("--wait", options->wait, kFollowHelp);
}

}  // namespace longhaul::cli
