#include "cli/follow.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "cli/interrupt_note.h"
#include "cli/local_process.h"
#include "cli/output.h"
#include "cli/run_views.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

// How long a coordinator may be away, and how often it is looked for.
constexpr absl::Duration kAwayMax = absl::Minutes(5);
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// Shows a run's updates; remembers how it ended.
class Follower {
 public:
  Follower(std::string run, const FollowOptions& options, bool json)
      : run_(std::move(run)),
        json_(json),
        good_(options.good),
        told_(options.told),
        after_(options.after_step) {}

  void OnUpdate(const v1::WatchRunResponse& update) {
    if (update.has_summary()) {
      OnSummary(update.summary());
    } else if (update.has_step()) {
      after_ = update.step().step();
      OnStep(update.step());
    }
  }

  // The last step shown; a watch goes on behind it.
  uint64_t after() const { return after_; }

  bool at_rest() const { return last_.has_value() && IsOver(*last_); }

  void OnAway(const absl::Status& why) {
    bar_.reset();
    std::fprintf(stderr,
                 "longhaul: the coordinator is away and training goes on; waiting for it (%s)\n",
                 Printable(why.message()).c_str());
  }

  int Finish() {
    bar_.reset();
    const std::string end =
        absl::StrCat("run ", run_, " is ", last_->state(), ": ", last_->reason());
    const bool good = last_->state() == "done" ||
                      (last_->state() == "stopped" && good_ == GoodEnd::kDoneOrStopped);
    if (json_) {
      PrintJsonLine({{"run", run_}, {"state", last_->state()}, {"reason", last_->reason()}});
    } else if (good) {
      Print(Printable(absl::StrCat(end, "\n")));
    }
    if (good) return kExitDone;
    std::fprintf(stderr, "longhaul: %s\n", Printable(end).c_str());
    return kExitFailed;
  }

 private:
  void OnSummary(const v1::RunSummary& summary) {
    const bool is_told = !last_.has_value() && summary.reason() == told_;
    const bool changed = !last_.has_value() || summary.state() != last_->state();
    last_ = summary;
    if (!json_ && changed && !is_told && !at_rest()) {  // the end is told by Finish
      bar_.reset();
      std::fprintf(stderr, "run %s: %s%s%s\n", run_.c_str(), summary.state().c_str(),
                   summary.reason().empty() ? "" : ", ", Printable(summary.reason()).c_str());
    }
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
    if (!step.applied())
      absl::StrAppend(&note, step.tokens() == 0 ? "  SKIPPED (no token is a target)"
                                                : "  SKIPPED (norm not finite)");
    bar_->Update(step.step(), note);
  }

  const std::string run_;
  const bool json_;
  const GoodEnd good_;
  const std::string told_;
  uint64_t after_;
  std::unique_ptr<ProgressBar> bar_;
  std::optional<v1::RunSummary> last_;
  std::optional<double> validation_;
};

// Connects again; Unavailable when nobody answered for too long.
absl::StatusOr<std::unique_ptr<Client>> Reconnect(const Context& context) {
  const absl::Time deadline = RealClock().Now() + kAwayMax;
  absl::Duration pause = kFirstPause;
  for (;;) {
    Pause(pause);
    auto client = Client::Connect(context);
    if (!absl::IsUnavailable(client.status()) || RealClock().Now() >= deadline) return client;
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace

int FollowRun(const Context& context, std::unique_ptr<Client> client, const std::string& run,
              const FollowOptions& options) {
  const InterruptNote note(
      options.good == GoodEnd::kDoneOrStopped
          ? absl::StrCat("run ", run, " stops all the same; longhaul run show ", run, " tells when")
          : absl::StrCat("run ", run, " goes on; longhaul run watch ", run,
                         " follows it, longhaul run stop ", run, " stops it"));
  Follower follower(run, options, context.json());
  while (!follower.at_rest()) {
    absl::Status status =
        client->WatchRun(run, follower.after(), [&](const v1::WatchRunResponse& update) {
          follower.OnUpdate(update);
          return OutputGood();
        });
    if (!OutputGood()) return kExitFailed;
    if (follower.at_rest()) break;
    if (status.ok()) status = absl::UnavailableError("it ended the connection");
    if (!absl::IsUnavailable(status)) return Fail(status);
    follower.OnAway(status);
    auto again = Reconnect(context);
    if (!again.ok()) return Fail(again.status());
    client = *std::move(again);
  }
  return follower.Finish();
}

}  // namespace longhaul::cli
