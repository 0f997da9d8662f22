#include "compute/backend/streams.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longhaul::compute {
namespace {

// Between two questions: as long as has been waited already, so that short waits end soon, within
// these bounds.
constexpr absl::Duration kPauseMin = absl::Microseconds(20);
constexpr absl::Duration kPauseMax = absl::Microseconds(50);

}  // namespace

absl::Status WaitUntilReached(absl::FunctionRef<absl::StatusOr<bool>()> reached, Clock& clock,
                              absl::Time deadline, absl::string_view what) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const absl::Time begin = clock.Now();
  while (true) {
    LH_ASSIGN_OR_RETURN(const bool is_reached, reached());
    if (is_reached) return absl::OkStatus();
    const absl::Time now = clock.Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(what, ": not done after ", absl::FormatDuration(now - begin)));
    }
    const absl::Duration pause = std::clamp(now - begin, kPauseMin, kPauseMax);
    clock.WaitUntil(lock, never, std::min(deadline, now + pause), [] { return false; });
  }
}

absl::Status WaitFor(Mark& mark, Clock& clock, absl::Time deadline, absl::string_view what) {
  return WaitUntilReached([&] { return mark.Reached(); }, clock, deadline, what);
}

}  // namespace longhaul::compute
