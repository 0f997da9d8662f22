// For tests: the tokens of the runs that ExecutorCluster and ReferenceRun train, and their batches.
#ifndef LONGHAUL_WORKER_EXEC_TESTING_CLUSTER_DATA_H_
#define LONGHAUL_WORKER_EXEC_TESTING_CLUSTER_DATA_H_

#include <cstdint>
#include <memory>

#include "data/batches.h"
#include "data/documents.h"
#include "data/token_source.h"
#include "run/run_spec.h"

namespace longhaul::worker {

struct ClusterDataOptions {
  int32_t token_outside = -1;  // put into the training part, where every sequence meets it
  run::DocumentMode documents = run::DocumentMode::kPacked;
  bool every_token_ends_a_document = false;  // else those with id 7
};

// A text in memory whose next token is likely the last one plus one, so that there is something to
// learn. Immutable.
class ClusterData {
 public:
  ClusterData(const run::RunSpec& spec, const ClusterDataOptions& options);
  const data::Batches& batches() const { return *batches_; }

 private:
  std::unique_ptr<data::TokenSource> tokens_;
  data::Documents documents_;
  std::unique_ptr<data::Batches> batches_;  // of the two above
};

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_EXEC_TESTING_CLUSTER_DATA_H_
