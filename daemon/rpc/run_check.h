// What the coordinator checks of a run's data before it asks the core.
#ifndef LONGHAUL_DAEMON_RPC_RUN_CHECK_H_
#define LONGHAUL_DAEMON_RPC_RUN_CHECK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "data/dataset.h"
#include "run/run_spec.h"

namespace longhaul::daemon {

// The tokens of `spec`, whose data sets are in the store, are as many as it says and fit its model
// (data::CheckTokens). Reads the whole set once.
absl::Status CheckStoredTokens(const run::RunSpec& spec, const data::DatasetStore& datasets);

// Thread-safe. Remembers which data fitted which model: data sets are named by their content, so
// that a large one is not read again for every run, nor when a client asks again that had no time
// to wait.
class RunDataCheck {
 public:
  using TokenCheck = std::function<absl::Status(const run::RunSpec&, const data::DatasetStore&)>;
  // `datasets` must outlive this.
  explicit RunDataCheck(const data::DatasetStore& datasets, TokenCheck check = CheckStoredTokens);

  // The data set, and what the tokenizer has of files, is here and undamaged, is long enough for
  // its context, and no token exceeds the vocabulary. The error has the numbers and says what to
  // change. FailedPrecondition: it must be uploaded first.
  absl::Status Check(const run::RunSpec& spec);

 private:
  // All that the check of tokens looks at.
  struct Passed {
    run::DataSpec data;
    int64_t context = 0;
    int64_t vocab = 0;
    bool operator==(const Passed&) const = default;
  };

  const data::DatasetStore& datasets_;
  const TokenCheck check_;
  std::mutex mutex_;
  std::deque<Passed> passed_;  // guarded by mutex_; the newest last
};

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_RUN_CHECK_H_
