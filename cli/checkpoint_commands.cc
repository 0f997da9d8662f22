// longhaul checkpoint ls|export
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "model/family.h"
#include "nlohmann/json.hpp"
#include "run/run_spec.h"

namespace longhaul::cli {
namespace {

struct CheckpointOptions {
  std::string run;
  std::string to;
  int64_t step = -1;  // the newest
  bool overwrite = false;
};

struct ListedCheckpoint {
  checkpoint::Manifest manifest;
  std::string note;  // that it is damaged, say
};

absl::StatusOr<std::vector<ListedCheckpoint>> ReadCheckpoints(Client& client,
                                                              const std::string& run) {
  LH_ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse answer, client.ListCheckpoints(run));
  std::vector<ListedCheckpoint> checkpoints;
  for (int c = 0; c < answer.manifest_json_size(); ++c) {
    ListedCheckpoint& listed = checkpoints.emplace_back();
    LH_ASSIGN_OR_RETURN(listed.manifest, checkpoint::ManifestFromJson(answer.manifest_json(c)));
    if (c < answer.notes_size()) listed.note = answer.notes(c);
  }
  return checkpoints;
}

uint64_t Bytes(const checkpoint::Manifest& manifest) {
  uint64_t bytes = 0;
  for (const checkpoint::Shard& shard : manifest.shards) bytes += shard.bytes;
  return bytes;
}

int List(Context& context, const CheckpointOptions& options) {
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto checkpoints = ReadCheckpoints(**client, options.run);
  if (!checkpoints.ok()) return Fail(checkpoints.status());
  std::vector<std::vector<std::string>> rows = {{"STEP", "EPOCH", "SHARDS", "SIZE", "NOTE"}};
  for (const auto& [manifest, note] : *checkpoints) {
    if (context.json()) {
      PrintJsonLine({{"run", manifest.run},
                     {"step", manifest.step},
                     {"epoch", ToString(manifest.epoch)},
                     {"shards", manifest.shards.size()},
                     {"bytes", Bytes(manifest)},
                     {"note", note}});
    }
    rows.push_back({absl::StrCat(manifest.step), ToString(manifest.epoch),
                    absl::StrCat(manifest.shards.size()),
                    FormatBytes(static_cast<double>(Bytes(manifest))), note});
  }
  if (!context.json()) PrintTable(rows);
  return kExitDone;
}

// The one of the step asked for, else the newest, which is what the run would resume from.
absl::StatusOr<checkpoint::Manifest> Choose(const std::vector<ListedCheckpoint>& checkpoints,
                                            const CheckpointOptions& options,
                                            const v1::RunSummary& run) {
  if (checkpoints.empty()) {
    return absl::NotFoundError(absl::StrCat("run ", options.run, " has no checkpoint yet"));
  }
  const bool is_known = options.step >= 0 || run.has_checkpoint();
  const int64_t step =
      options.step < 0 ? static_cast<int64_t>(run.checkpoint_step()) : options.step;
  std::vector<std::string> steps;
  for (const auto& [manifest, note] : checkpoints) {
    if (is_known && manifest.step == step) return manifest;
    steps.push_back(
        absl::StrCat("step ", manifest.step, note.empty() ? "" : absl::StrCat(" (", note, ")")));
  }
  return absl::NotFoundError(
      absl::StrCat("run ", options.run,
                   options.step < 0 ? " has no checkpoint that is good; choose one with --step"
                                    : absl::StrCat(" has no checkpoint of step ", step),
                   "; it has ", absl::StrJoin(steps, ", ")));
}

// Fetches every shard and puts the weights together; moments are checked and dropped.
absl::StatusOr<checkpoint::ModelWeights> FetchWeights(Client& client, const model::ModelSpec& spec,
                                                      const checkpoint::Manifest& manifest) {
  LH_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(spec));
  LH_RETURN_IF_ERROR(checkpoint::ValidateCoverage(manifest, graph));
  checkpoint::ModelWeights weights{spec, {}};
  std::vector<checkpoint::MutableParameterState> states;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const size_t elements = static_cast<size_t>(graph.parameters[p].elements());
    weights.parameters.emplace_back(elements);
    states.push_back({static_cast<int>(p), absl::MakeSpan(weights.parameters[p]), {}, {}});
  }
  ProgressBar bar("export", manifest.shards.size(), "shards");
  for (size_t s = 0; s < manifest.shards.size(); ++s) {
    const checkpoint::Shard& shard = manifest.shards[s];
    LH_ASSIGN_OR_RETURN(const std::string bytes, client.FetchShard(shard.sha256, shard.bytes));
    LH_RETURN_IF_ERROR(checkpoint::DecodeShard(graph, shard, bytes, states).status());
    bar.Update(s + 1, "");
  }
  return weights;
}

// The tokenizer's files that were stored with the run.
absl::StatusOr<std::vector<checkpoint::PassedFile>> FetchPassed(Client& client,
                                                                const run::RunSpec& spec) {
  std::vector<checkpoint::PassedFile> files;
  for (const std::string& entry : spec.tokenizer_files) {
    const size_t blank = entry.find(' ');
    const std::string name = entry.substr(0, blank);
    if (!checkpoint::IsPassedFile(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", spec.name, " has a tokenizer's file ", name, ", which is no such"));
    }
    LH_ASSIGN_OR_RETURN(std::string bytes, client.FetchDataset(entry.substr(blank + 1),
                                                               checkpoint::kPassedFileBytesMax));
    files.push_back({name, std::move(bytes)});
  }
  return files;
}

struct Exported {
  checkpoint::Manifest manifest;
  bool is_graph = false;
};

absl::StatusOr<Exported> ExportTo(Client& client, const CheckpointOptions& options) {
  LH_ASSIGN_OR_RETURN(const v1::RunSummary run, client.ShowRun(options.run));
  LH_ASSIGN_OR_RETURN(const run::RunSpec spec, run::FromJson(run.spec_json()));
  LH_ASSIGN_OR_RETURN(const auto checkpoints, ReadCheckpoints(client, options.run));
  LH_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, Choose(checkpoints, options, run));
  LH_ASSIGN_OR_RETURN(auto weights, FetchWeights(client, spec.model, manifest));
  LH_ASSIGN_OR_RETURN(auto files, checkpoint::ExportHuggingFace(std::move(weights)));
  LH_ASSIGN_OR_RETURN(files.passed, FetchPassed(client, spec));
  LH_RETURN_IF_ERROR(checkpoint::WriteHuggingFace(files, options.to, options.overwrite));
  return Exported{manifest, !files.graph_json.empty()};
}

int Export(Context& context, const CheckpointOptions& options) {
  // Before anything is fetched, which may take long.
  if (absl::Status target = checkpoint::CheckExportTarget(options.to, options.overwrite);
      !target.ok()) {
    return Fail(target);
  }
  auto client = Client::Connect(context);
  if (!client.ok()) return Fail(client.status());
  auto exported = ExportTo(**client, options);
  if (!exported.ok()) return Fail(exported.status());
  const checkpoint::Manifest& manifest = exported->manifest;
  if (context.json()) {
    PrintJsonLine({{"run", options.run}, {"step", manifest.step}, {"directory", options.to}});
  } else {
    Print(absl::StrCat("exported run ", options.run, ", step ", manifest.step, ", to ", options.to,
                       exported->is_graph ? ": graph.json, and model.safetensors under the graph's "
                                            "own names, since Hugging Face has no layout for it\n"
                                          : "\n"));
  }
  return kExitDone;
}

}  // namespace

void RegisterCheckpointCommands(CLI::App& app, Context& context, Command& chosen) {
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "list and export checkpoints");
  checkpoint->require_subcommand(1);
  auto options = std::make_shared<CheckpointOptions>();

  CLI::App* list = checkpoint->add_subcommand("ls", "the checkpoints of a run");
  AddCommonOptions(*list, context);
  list->add_option("run", options->run, "name of the run")->required();
  list->callback(
      [&chosen, options] { chosen = [options](Context& c) { return List(c, *options); }; });

  CLI::App* exporter = checkpoint->add_subcommand(
      "export",
      "write a checkpoint in Hugging Face's layout: config.json, model.safetensors and the "
      "tokenizer's files (of a graph: graph.json instead of config.json)");
  AddCommonOptions(*exporter, context);
  exporter->add_option("run", options->run, "name of the run")->required();
  exporter->add_option("--to", options->to, "folder to write")->required();
  exporter->add_option("--step", options->step, "step of the checkpoint (the newest)")
      ->check(WholeNumber());
  exporter->add_flag("--overwrite", options->overwrite, "replace files that are there");
  exporter->callback(
      [&chosen, options] { chosen = [options](Context& c) { return Export(c, *options); }; });
}

}  // namespace longhaul::cli
