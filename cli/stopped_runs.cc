#include "cli/stopped_runs.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cli/local_process.h"
#include "cli/output.h"
#include "cli/run_views.h"
#include "nlohmann/json.hpp"

namespace longhaul::cli {
namespace {

constexpr absl::Duration kRestMax = absl::Seconds(5);
constexpr absl::Duration kPause = absl::Milliseconds(50);

void PrintEnd(const Context& context, const v1::RunSummary& run) {
  if (context.json()) {
    PrintJsonLine({{"run", run.run()},
                   {"state", run.state()},
                   {"reason", run.reason()},
                   {"step", run.step()},
                   {"steps", run.steps()},
                   {"has_checkpoint", run.has_checkpoint()},
                   {"checkpoint_step", run.checkpoint_step()}});
    return;
  }
  const std::string checkpoint = run.has_checkpoint()
                                     ? absl::StrCat("checkpoint of ", CheckpointOf(run, ""))
                                     : "no checkpoint";
  Print(Printable(absl::StrCat("run ", run.run(), " is ", run.state(), " at step ", run.step(),
                               " of ", run.steps(), " (", checkpoint, "): ", run.reason(), "\n")));
}

void SayNotKnown(const absl::Status& status) {
  std::fprintf(stderr, "longhaul: what became of the runs is not known: %s\n",
               Printable(status.message()).c_str());
}

}  // namespace

StoppedRuns::StoppedRuns(const Context& context) {
  if (const absl::Status asked = Ask(context); !asked.ok()) SayNotKnown(asked);
}

absl::Status StoppedRuns::Ask(const Context& context) {
  LH_ASSIGN_OR_RETURN(client_, Client::Connect(context));
  LH_ASSIGN_OR_RETURN(const v1::ListRunsResponse runs, client_->ListRuns());
  for (const v1::RunSummary& run : runs.runs()) {
    if (!IsOver(run)) active_.insert(run.run());
  }
  return absl::OkStatus();
}

void StoppedRuns::PrintEnds(const Context& context) {
  if (active_.empty()) return;
  const absl::Time deadline = RealClock().Now() + kRestMax;
  for (;;) {
    const auto runs = client_->ListRuns();
    if (!runs.ok()) return SayNotKnown(runs.status());
    std::vector<v1::RunSummary> ours;
    bool at_rest = true;
    for (const v1::RunSummary& run : runs->runs()) {
      if (active_.count(run.run()) == 0) continue;
      at_rest &= IsOver(run);
      ours.push_back(run);
    }
    if (at_rest || RealClock().Now() >= deadline) {
      for (const v1::RunSummary& run : ours) PrintEnd(context, run);
      return;
    }
    Pause(kPause);
  }
}

}  // namespace longhaul::cli
