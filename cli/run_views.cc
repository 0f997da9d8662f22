#include "cli/run_views.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output.h"

namespace longhaul::cli {
namespace {

// Of a reason beside other things; the whole stands below them, and in JSON.
constexpr size_t kReasonColumnsMax = 200;

// A stored document as JSON, or null if there is none.
nlohmann::ordered_json Embedded(const std::string& text) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_discarded() ? nlohmann::ordered_json(nullptr) : document;
}

std::string Progress(const v1::RunSummary& run) {
  const std::string progress = absl::StrCat(run.step(), "/", run.steps());
  if (run.again_up_to() == 0) return progress;
  return absl::StrCat(progress, " (again, up to ", run.again_up_to(), ")");
}

// "0-3", or "-" for a stage without a layer: the head, or one that is not known.
std::string Layers(const v1::StageSummary& stage) {
  if (stage.first_layer() < 0 || stage.first_operator().empty()) return "-";
  return absl::StrCat(stage.first_layer(), "-", stage.last_layer());
}

std::string Operators(const v1::StageSummary& stage) {
  if (stage.first_operator().empty()) return "-";
  if (stage.first_operator() == stage.last_operator()) return stage.first_operator();
  return absl::StrCat(stage.first_operator(), " to ", stage.last_operator());
}

std::string Loss(const v1::RunSummary& run) {
  return run.step() == 0 ? "-" : absl::StrFormat("%.4f", run.loss());
}

// Measured and predicted, as far as there are any.
std::string StepTime(const v1::RunSummary& run) {
  const std::string measured = FormatSeconds(run.step_seconds());
  const std::string predicted = FormatSeconds(run.predicted_step_seconds());
  if (run.predicted_step_seconds() <= 0) return "";
  if (run.step_seconds() <= 0) return absl::StrCat("   (predicted step ", predicted, ")");
  return absl::StrCat("   (a step takes ", measured, ", predicted ", predicted, ")");
}

// Who runs which stage, and why.
void PrintStages(const v1::RunSummary& run) {
  if (run.stages_size() == 0) return;
  std::vector<std::vector<std::string>> rows = {
      {"STAGE", "NODE", "SITE", "LAYERS", "OPERATORS", "STEP", "SECONDS", "COMPUTE", "WAIT"}};
  for (const v1::StageSummary& stage : run.stages()) {
    rows.push_back({stage.replicated() ? absl::StrCat(stage.stage(), " replica ", stage.replica())
                                       : absl::StrCat(stage.stage()),
                    stage.node(), stage.site(), Layers(stage), Operators(stage),
                    absl::StrCat(stage.step()), absl::StrFormat("%.3f", stage.total_seconds()),
                    absl::StrFormat("%.3f", stage.compute_seconds()),
                    absl::StrFormat("%.3f", stage.wait_seconds())});
  }
  Print("\n");
  PrintTable(rows);
  const auto plan = Embedded(run.plan_json());
  if (!plan.is_object() || !plan.contains("reasons") || !plan["reasons"].is_array()) return;
  Print("\nwhy this plan\n");
  for (const auto& reason : plan["reasons"]) {
    if (reason.is_string()) {
      Print(Printable(absl::StrCat("  - ", reason.get<std::string>(), "\n")));
    }
  }
}

}  // namespace

bool IsOver(const v1::RunSummary& run) {
  return run.state() != "pending" && run.state() != "running";
}

std::string CheckpointOf(const v1::RunSummary& run, const std::string& none) {
  return run.has_checkpoint() ? absl::StrCat("step ", run.checkpoint_step()) : none;
}

nlohmann::ordered_json RunLineToJson(const v1::RunSummary& run) {
  nlohmann::ordered_json object = {{"run", run.run()},
                                   {"state", run.state()},
                                   {"reason", run.reason()},
                                   {"phase", run.phase()},
                                   {"epoch", run.epoch()},
                                   {"step", run.step()},
                                   {"again_up_to", run.again_up_to()},
                                   {"steps", run.steps()},
                                   {"skipped_steps", run.skipped_steps()},
                                   {"has_checkpoint", run.has_checkpoint()},
                                   {"checkpoint_step", run.checkpoint_step()},
                                   {"tokens_per_second", run.tokens_per_second()}};
  if (run.step() > 0) object["loss"] = run.loss();
  if (run.has_validation()) object["validation_loss"] = run.validation_loss();
  if (run.step_seconds() > 0) object["step_seconds"] = run.step_seconds();
  object["predicted_step_seconds"] = run.predicted_step_seconds();
  object["stage_count"] = run.stage_count();
  return object;
}

nlohmann::ordered_json RunToJson(const v1::RunSummary& run) {
  nlohmann::ordered_json object = RunLineToJson(run);
  auto stages = nlohmann::ordered_json::array();
  for (const v1::StageSummary& stage : run.stages()) {
    stages.push_back({{"stage", stage.stage()},
                      {"replica", stage.replica()},
                      {"node", stage.node()},
                      {"site", stage.site()},
                      {"first_layer", stage.first_layer()},
                      {"last_layer", stage.last_layer()},
                      {"first_operator", stage.first_operator()},
                      {"last_operator", stage.last_operator()},
                      {"step", stage.step()},
                      {"total_seconds", stage.total_seconds()},
                      {"compute_seconds", stage.compute_seconds()},
                      {"wait_seconds", stage.wait_seconds()}});
  }
  object["stages"] = std::move(stages);
  object["plan"] = Embedded(run.plan_json());
  object["spec"] = Embedded(run.spec_json());
  return object;
}

nlohmann::ordered_json StepToJson(const std::string& run, const v1::WatchedStep& step) {
  nlohmann::ordered_json object = {{"run", run},
                                   {"step", step.step()},
                                   {"loss", step.loss()},
                                   {"tokens", step.tokens()},
                                   {"tokens_per_second", step.tokens_per_second()},
                                   {"gradient_norm", step.gradient_norm()},
                                   {"learning_rate", step.learning_rate()},
                                   {"applied", step.applied()}};
  if (step.has_validation()) object["validation_loss"] = step.validation_loss();
  return object;
}

void PrintRunTable(const v1::ListRunsResponse& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"RUN", "STATE", "STEP", "LOSS", "TOKENS/S", "STAGES", "CHECKPOINT", "REASON"}};
  std::string whole;  // of those that are cut in the table
  for (const v1::RunSummary& run : runs.runs()) {
    rows.push_back({run.run(), run.state(), Progress(run), Loss(run),
                    FormatRate(run.tokens_per_second()), absl::StrCat(run.stage_count()),
                    CheckpointOf(run, "-"), Shortened(run.reason(), kReasonColumnsMax)});
    if (rows.back().back() != run.reason()) {
      absl::StrAppend(&whole, "\nreason of ", run.run(), "\n  ", run.reason(), "\n");
    }
  }
  PrintTable(rows);
  Print(Printable(whole));
}

void PrintRun(const v1::RunSummary& run) {
  const std::string reason = Shortened(run.reason(), kReasonColumnsMax);
  std::string head =
      absl::StrCat("run         ", run.run(), "\nstate       ", run.state(),
                   reason.empty() ? "" : ": ", reason, "\nepoch       ", run.epoch(), " (",
                   run.phase(), ")\nstep        ", Progress(run), "\nloss        ", Loss(run));
  if (run.has_validation())
    absl::StrAppendFormat(&head, "   validation %.4f", run.validation_loss());
  absl::StrAppend(&head, "\ntokens/s    ", FormatRate(run.tokens_per_second()), StepTime(run),
                  "\ncheckpoint  ", CheckpointOf(run, "none yet"), "\n");
  if (run.skipped_steps() > 0) {
    absl::StrAppend(&head, "skipped     ", run.skipped_steps(),
                    " steps had a gradient that was not finite\n");
  }
  Print(Printable(head));
  PrintStages(run);
  if (reason != run.reason()) {
    Print(Printable(absl::StrCat("\nreason of ", run.run(), "\n  ", run.reason(), "\n")));
  }
}

}  // namespace longhaul::cli
