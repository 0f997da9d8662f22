#include "worker/comm/exchange_router.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/constant_time.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

constexpr size_t kStreamsBeforeHelloMax = 64;
constexpr absl::Duration kHelloTimeout = absl::Seconds(10);

}  // namespace

struct ExchangeRouter::Entry {
  std::string run;
  Epoch epoch;
  std::string token;
  StreamServer* exchange = nullptr;
  bool replaced = false;  // by a newer epoch; takes no new streams
  std::set<ServerStream*> streams;

  void CancelStreams() {
    for (ServerStream* const stream : streams) stream->Cancel();
  }
};

absl::Status ExchangeRouter::Serve(ServerStream& stream) {
  LH_ASSIGN_OR_RETURN(const StreamHello hello, ReadHello(stream));
  LH_ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Enter(hello, stream));
  const absl::Status status = entry->exchange->Serve(hello, stream);
  std::lock_guard<std::mutex> lock(mutex_);
  entry->streams.erase(&stream);
  changed_.notify_all();
  return status;
}

absl::StatusOr<StreamHello> ExchangeRouter::ReadHello(ServerStream& stream) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const absl::Time now = clock_.Now();
    for (const auto& [waiting, since] : before_hello_) {
      if (now - since > kHelloTimeout) waiting->Cancel();
    }
    if (before_hello_.size() >= kStreamsBeforeHelloMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat(before_hello_.size(), " streams have not said hello yet; try again"));
    }
    before_hello_[&stream] = now;
  }
  const absl::Cleanup forget = [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    before_hello_.erase(&stream);
  };
  LH_ASSIGN_OR_RETURN(StreamMessage first, stream.Read());
  auto* const hello = std::get_if<StreamHello>(&first);
  if (hello == nullptr) return absl::InvalidArgumentError("a stream begins with a hello");
  return std::move(*hello);
}

absl::StatusOr<std::shared_ptr<ExchangeRouter::Entry>> ExchangeRouter::Enter(
    const StreamHello& hello, ServerStream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->run == hello.run && !entry->replaced;
  });
  if (found == entries_.end()) {
    return absl::UnavailableError(absl::StrCat("run ", hello.run, " is not here (yet)"));
  }
  Entry& entry = **found;
  if (hello.epoch > entry.epoch) {
    return absl::UnavailableError(absl::StrCat("epoch ", ToString(hello.epoch), " of run ",
                                               hello.run, " is not here yet, ",
                                               ToString(entry.epoch), " is"));
  }
  if (hello.epoch < entry.epoch) {
    ++stale_epochs_refused_;
    return absl::FailedPreconditionError(absl::StrCat("epoch ", ToString(hello.epoch), " of run ",
                                                      hello.run, " has ended, ",
                                                      ToString(entry.epoch), " is in force"));
  }
  if (!EqualInConstantTime(hello.token, entry.token)) {
    return absl::PermissionDeniedError(absl::StrCat("the token of ", stream.peer(),
                                                    " is not that of run ", hello.run, " epoch ",
                                                    ToString(hello.epoch)));
  }
  entry.streams.insert(&stream);
  return *found;
}

void ExchangeRouter::Register(const std::string& run, const Epoch& epoch, const std::string& token,
                              StreamServer* exchange) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Entry>& entry : entries_) {
    if (entry->run != run) continue;
    LH_CHECK(entry->epoch < epoch, "run ", run, " epoch ", ToString(epoch), " after ",
             ToString(entry->epoch));
    entry->replaced = true;
    entry->CancelStreams();
  }
  auto entry = std::make_shared<Entry>();
  entry->run = run;
  entry->epoch = epoch;
  entry->token = token;
  entry->exchange = exchange;
  entries_.push_back(std::move(entry));
}

void ExchangeRouter::Unregister(const std::string& run, const Epoch& epoch) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_it = [&](const auto& entry) { return entry->run == run && entry->epoch == epoch; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
  if (found == entries_.end()) return;
  const std::shared_ptr<Entry> entry = *found;
  entry->replaced = true;
  entry->CancelStreams();
  // A cancelled stream ends, as its contract says.
  clock_.WaitUntil(lock, changed_, absl::InfiniteFuture(), [&] { return entry->streams.empty(); });
  std::erase(entries_, entry);
}

uint64_t ExchangeRouter::stale_epochs_refused() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stale_epochs_refused_;
}

}  // namespace longhaul::worker
