// How a stage job gets its data set.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "data/dataset.h"
#include "data/run_data.h"
#include "worker/host/stage_job.h"

namespace longhaul::worker {

namespace {

// Much shorter than the coordinator's prepare_max can be of use.
constexpr absl::Duration kPreparingSaidEvery = absl::Seconds(5);

}  // namespace

absl::Status StageJob::OpenData() {
  if (!plan_.is_first && !plan_.is_last) return absl::OkStatus();
  const run::RunSpec& spec = assignment_.spec;

  LH_RETURN_IF_ERROR(FetchData(spec.data.id));
  if (!spec.data.index_id.empty()) LH_RETURN_IF_ERROR(FetchData(spec.data.index_id));
  LH_ASSIGN_OR_RETURN(tokens_,
                      data::OpenTokens(data::StoredFiles(datasets_, spec.data), spec.data));
  if (const int64_t tokens = tokens_->source->size(); tokens != spec.data.tokens) {
    return absl::DataLossError(absl::StrCat("data set ", spec.data.id, " has ", tokens,
                                            " tokens, the run says ", spec.data.tokens));
  }
  batches_.emplace(*tokens_->source, tokens_->documents, split_,
                   data::BatchOptions{spec.train.seed, spec.train.micro_batch, spec.model.context});
  return absl::OkStatus();
}

absl::Status StageJob::FetchData(const std::string& id) {
  SetPhase("checking data");
  LH_ASSIGN_OR_RETURN(const data::DatasetIndex index, FetchIndex(id));
  bool fetches = false;
  const auto fetch = [&](uint64_t chunk) -> absl::StatusOr<std::string> {
    if (!std::exchange(fetches, true)) SetPhase("fetching data");
    const Patience patience = MakePatience();
    auto bytes = WhileUnavailable(
        patience, [&] { return remote_->FetchChunk(id, chunk, patience.deadline); });
    LH_RETURN_IF_ERROR(GoesOn());
    return bytes;
  };
  return datasets_.Fill(index, fetch, [this] { return GoesOn(); });
}

absl::StatusOr<data::DatasetIndex> StageJob::FetchIndex(const std::string& id) {
  if (auto index = datasets_.Index(id); index.ok()) return index;
  const Patience patience = MakePatience();
  LH_ASSIGN_OR_RETURN(data::DatasetIndex index, WhileUnavailable(patience, [&] {
                        return remote_->FetchIndex(id, patience.deadline);
                      }));
  if (index.Id() == id) return index;
  return absl::DataLossError(
      absl::StrCat("the coordinator's index of data set ", id, " has another hash"));
}

void StageJob::SayPreparing() {
  preparing_said_ = dependencies_.clock->Now();
  outbox_.Tell(Preparing{assignment_.run, assignment_.epoch});
}

absl::Status StageJob::GoesOn() {
  if (dependencies_.clock->Now() >= preparing_said_ + kPreparingSaidEvery) SayPreparing();
  return CheckCancelled();
}

Patience StageJob::MakePatience() {
  return {dependencies_.clock, dependencies_.clock->Now() + options_.transfer_max,
          [this](absl::Duration duration) {
            std::unique_lock<std::mutex> lock(mutex_);
            dependencies_.clock->WaitUntil(lock, changed_, dependencies_.clock->Now() + duration,
                                           [this] { return !cancelled_.ok(); });
            return OwnCopy(cancelled_);
          }};
}

}  // namespace longhaul::worker
