#include "coordinator/host/work_thread.h"

#include <optional>
#include <utility>

namespace longhaul::coordinator {
namespace {

// A run asks for one plan at a time and commits one checkpoint every few steps; this many waiting
// means that something is broken.
constexpr size_t kWorkMax = 4096;

std::optional<Event> AnswerTooMuch(const Work& work) {
  const absl::Status error =
      absl::FailedPreconditionError("the coordinator has too much work waiting; try again");
  if (const auto* plan = std::get_if<RequestPlan>(&work)) {
    return PlanMade{plan->run, plan->epoch, error};
  }
  if (const auto* commit = std::get_if<CommitWork>(&work)) {
    const checkpoint::Manifest& manifest = commit->manifest;
    return ManifestCommitted{manifest.run, manifest.epoch, manifest.step, error};
  }
  return std::nullopt;
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
  if (queue_.TryPush(std::move(work))) return;
  if (std::optional<Event> answer = AnswerTooMuch(work)) dependencies_.answer(*std::move(answer));
}

void WorkThread::Loop() {
  while (std::optional<Work> work = queue_.Pop(absl::InfiniteFuture())) {
    if (ending_) return;
    std::visit([this](const auto& piece) { Do(piece); }, *work);
  }
}

void WorkThread::Do(const RequestPlan& work) {
  dependencies_.answer(PlanMade{work.run, work.epoch, dependencies_.planner(work.request)});
}

void WorkThread::Do(const CommitWork& work) {
  dependencies_.answer(
      ManifestCommitted{work.manifest.run, work.manifest.epoch, work.manifest.step,
                        dependencies_.checkpoints->Commit(work.manifest, work.spec)});
}

void WorkThread::Do(const PruneCheckpoints& work) {
  dependencies_.checkpoints->Prune(work.run, work.before_step);
}

void WorkThread::Do(const DropShards& work) {
  dependencies_.checkpoints->Drop(work.run, work.sha256s);
}

}  // namespace longhaul::coordinator
