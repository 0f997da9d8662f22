#include "coordinator/host/work_thread.h"

#include <optional>
#include <utility>

namespace longhaul::coordinator {
namespace {

// A run asks for one plan at a time and commits one checkpoint every few steps; this many waiting
// means that something is broken.
constexpr size_t kWorkMax = 4096;

Event AnswerTooMuch(const Work& work) {
  const absl::Status error =
      absl::FailedPreconditionError("the coordinator has too much work waiting; try again");
  if (const auto* plan = std::get_if<RequestPlan>(&work)) {
    return PlanMade{plan->run, plan->epoch, error};
  }
  const checkpoint::Manifest& manifest = std::get<CommitWork>(work).manifest;
  return ManifestCommitted{manifest.run, manifest.epoch, manifest.step, error};
}

}  // namespace

WorkThread::WorkThread(Dependencies dependencies)
    : dependencies_(std::move(dependencies)),
      queue_(kWorkMax, *dependencies_.clock),
      thread_([this] { Loop(); }) {}

WorkThread::~WorkThread() {
  ending_ = true;
  queue_.Close();
  thread_.join();
}

void WorkThread::Submit(Work work) {
  if (!queue_.TryPush(std::move(work))) dependencies_.answer(AnswerTooMuch(work));
}

void WorkThread::Loop() {
  while (std::optional<Work> work = queue_.Pop(absl::InfiniteFuture())) {
    if (ending_) return;
    dependencies_.answer(std::visit([this](const auto& piece) { return Do(piece); }, *work));
  }
}

Event WorkThread::Do(const RequestPlan& work) {
  return PlanMade{work.run, work.epoch, dependencies_.planner(work.request)};
}

Event WorkThread::Do(const CommitWork& work) {
  return ManifestCommitted{work.manifest.run, work.manifest.epoch, work.manifest.step,
                           dependencies_.checkpoints->Commit(work.manifest, work.spec)};
}

}  // namespace longhaul::coordinator
