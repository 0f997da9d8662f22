// What the coordinator checks of a run's data before it asks the core.
#ifndef LONGHAUL_DAEMON_RPC_RUN_CHECK_H_
#define LONGHAUL_DAEMON_RPC_RUN_CHECK_H_

#include "absl/status/status.h"
#include "data/dataset.h"
#include "run/run_spec.h"

namespace longhaul::daemon {

// The data set, and what the tokenizer has of files, is here, is long enough for its context, and
// no token exceeds the vocabulary. The error has the numbers and says what to change. Reads the
// whole set once.
absl::Status CheckRunData(const run::RunSpec& spec, const data::DatasetStore& datasets);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_RPC_RUN_CHECK_H_
