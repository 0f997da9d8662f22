#include "cli/run_views.h"

#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/context.h"

namespace longhaul::cli {
namespace {

// A stored document as JSON, or null if there is none.
nlohmann::ordered_json Embedded(const std::string& text) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_discarded() ? nlohmann::ordered_json(nullptr) : document;
}

std::string Progress(const v1::RunSummary& run) {
  return absl::StrCat(run.step(), "/", run.steps());
}

std::string Loss(const v1::RunSummary& run) {
  return run.step() == 0 ? "-" : absl::StrFormat("%.4f", run.loss());
}

// Shows a run's updates; remembers how it ended.
class Follower {
 public:
  Follower(std::string run, bool json) : run_(std::move(run)), json_(json) {}

  bool OnUpdate(const v1::WatchRunResponse& update) {
    if (update.has_summary()) {
      OnSummary(update.summary());
    } else if (update.has_step()) {
      OnStep(update.step());
    }
    return true;
  }

  int Finish() {
    bar_.reset();
    if (!last_.has_value()) return kExitFailed;
    if (json_) {
      PrintJsonLine({{"run", run_}, {"state", last_->state()}, {"reason", last_->reason()}});
    } else {
      std::printf("run %s is %s: %s\n", run_.c_str(), last_->state().c_str(),
                  Printable(last_->reason()).c_str());
    }
    const bool good = last_->state() == "done" || last_->state() == "stopped";
    return good ? kExitDone : kExitFailed;
  }

 private:
  void OnSummary(const v1::RunSummary& summary) {
    if (!json_ && summary.state() != (last_ ? last_->state() : "")) {
      bar_.reset();
      std::fprintf(stderr, "run %s: %s%s%s\n", run_.c_str(), summary.state().c_str(),
                   summary.reason().empty() ? "" : ", ", Printable(summary.reason()).c_str());
    }
    last_ = summary;
  }

  void OnStep(const v1::WatchedStep& step) {
    if (json_) {
      PrintJsonLine(StepToJson(run_, step));
      return;
    }
    if (step.has_validation()) validation_ = step.validation_loss();
    if (bar_ == nullptr && last_.has_value()) {
      bar_ = std::make_unique<ProgressBar>(run_, last_->steps(), "steps");
    }
    if (bar_ == nullptr) return;
    std::string note = absl::StrFormat("loss %.4f  %s tokens/s", step.loss(),
                                       FormatRate(step.tokens_per_second()));
    if (validation_.has_value()) absl::StrAppendFormat(&note, "  validation %.4f", *validation_);
    if (!step.applied()) absl::StrAppend(&note, "  SKIPPED (norm not finite)");
    bar_->Update(step.step(), note);
  }

  const std::string run_;
  const bool json_;
  std::unique_ptr<ProgressBar> bar_;
  std::optional<v1::RunSummary> last_;
  std::optional<double> validation_;
};

}  // namespace

nlohmann::ordered_json RunToJson(const v1::RunSummary& run) {
  nlohmann::ordered_json object = {{"run", run.run()},
                                   {"state", run.state()},
                                   {"reason", run.reason()},
                                   {"phase", run.phase()},
                                   {"epoch", run.epoch()},
                                   {"step", run.step()},
                                   {"steps", run.steps()},
                                   {"skipped_steps", run.skipped_steps()},
                                   {"checkpoint_step", run.checkpoint_step()},
                                   {"tokens_per_second", run.tokens_per_second()}};
  if (run.step() > 0) object["loss"] = run.loss();
  if (run.has_validation()) object["validation_loss"] = run.validation_loss();
  object["predicted_step_seconds"] = run.predicted_step_seconds();
  auto stages = nlohmann::ordered_json::array();
  for (const v1::StageSummary& stage : run.stages()) {
    stages.push_back({{"stage", stage.stage()},
                      {"node", stage.node()},
                      {"site", stage.site()},
                      {"first_layer", stage.first_layer()},
                      {"last_layer", stage.last_layer()},
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
  for (const v1::RunSummary& run : runs.runs()) {
    rows.push_back({run.run(), run.state(), Progress(run), Loss(run),
                    FormatRate(run.tokens_per_second()), absl::StrCat(run.stages_size()),
                    run.checkpoint_step() == 0 ? "-" : absl::StrCat("step ", run.checkpoint_step()),
                    run.reason()});
  }
  PrintTable(rows);
}

void PrintRun(const v1::RunSummary& run) {
  std::printf("run         %s\n", run.run().c_str());
  std::printf("state       %s%s%s\n", run.state().c_str(), run.reason().empty() ? "" : ": ",
              Printable(run.reason()).c_str());
  std::printf("epoch       %s (%s)\n", run.epoch().c_str(), run.phase().c_str());
  std::printf("step        %s\n", Progress(run).c_str());
  std::printf("loss        %s", Loss(run).c_str());
  if (run.has_validation()) std::printf("   validation %.4f", run.validation_loss());
  std::printf("\ntokens/s    %s", FormatRate(run.tokens_per_second()).c_str());
  if (run.predicted_step_seconds() > 0) {
    std::printf("   (predicted step %s)", FormatSeconds(run.predicted_step_seconds()).c_str());
  }
  std::printf("\ncheckpoint  %s\n", run.checkpoint_step() == 0
                                        ? "none yet"
                                        : absl::StrCat("step ", run.checkpoint_step()).c_str());
  if (run.skipped_steps() > 0) {
    std::printf("skipped     %s steps had a gradient that was not finite\n",
                absl::StrCat(run.skipped_steps()).c_str());
  }
  if (run.stages_size() == 0) return;
  std::vector<std::vector<std::string>> rows = {
      {"STAGE", "NODE", "SITE", "LAYERS", "STEP", "SECONDS", "COMPUTE", "WAIT"}};
  for (const v1::StageSummary& stage : run.stages()) {
    rows.push_back({absl::StrCat(stage.stage()), stage.node(), stage.site(),
                    absl::StrCat(stage.first_layer(), "-", stage.last_layer()),
                    absl::StrCat(stage.step()), absl::StrFormat("%.3f", stage.total_seconds()),
                    absl::StrFormat("%.3f", stage.compute_seconds()),
                    absl::StrFormat("%.3f", stage.wait_seconds())});
  }
  std::printf("\n");
  PrintTable(rows);
  const auto plan = Embedded(run.plan_json());
  if (!plan.is_object() || !plan.contains("reasons") || !plan["reasons"].is_array()) return;
  std::printf("\nwhy this plan\n");
  for (const auto& reason : plan["reasons"]) {
    if (reason.is_string()) {
      std::printf("  - %s\n", Printable(reason.get<std::string>()).c_str());
    }
  }
}

int FollowRun(Client& client, const std::string& run, uint64_t after_step, bool json) {
  Follower follower(run, json);
  const absl::Status status = client.WatchRun(
      run, after_step,
      [&](const v1::WatchRunResponse& update) { return follower.OnUpdate(update); });
  if (!status.ok()) return Fail(status);
  return follower.Finish();
}

}  // namespace longhaul::cli
