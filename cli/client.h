// The command line's connection to the coordinator.
#ifndef LONGHAUL_CLI_CLIENT_H_
#define LONGHAUL_CLI_CLIENT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "checkpoint/shard.h"
#include "cli/context.h"
#include "daemon/rpc/credentials.h"
#include "data/dataset.h"
#include "longhaul/v1/admin.grpc.pb.h"
#include "longhaul/v1/storage.grpc.pb.h"

namespace longhaul::cli {

// What a resume changes of a run; what is left out stays as it was.
struct ResumeChanges {
  int stages = 0;                // 0: as before
  int replicas = 0;              // of every stage; 0: as before
  std::optional<uint64_t> step;  // of the checkpoint to go back to; 0: the beginning
};

// One channel. Every call but WatchRun has a deadline. What the coordinator refuses keeps its words
// and, but for Unavailable, its code: Unavailable always means that nobody answered, and says which
// address was tried and how it was found. After DeadlineExceeded, and Aborted that says so, what
// was asked may have been done. The transfer of a shard may take as long as bytes move.
class Client {
 public:
  // To what FindTarget says. Unavailable when nobody answers.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const Context& context);

  const std::string& address() const { return address_; }

  // `checkpoint_json`: the manifest of the weights where they are given, else empty. `data_bytes`:
  // of the data sets, which the coordinator reads first.
  absl::StatusOr<std::string> StartRun(const std::string& spec_json,
                                       const std::string& checkpoint_json, uint64_t data_bytes);
  absl::StatusOr<std::string> StopRun(const std::string& run);
  absl::StatusOr<std::string> ResumeRun(const std::string& run, const ResumeChanges& changes);
  absl::StatusOr<v1::ListRunsResponse> ListRuns();
  absl::StatusOr<v1::RunSummary> ShowRun(const std::string& run);
  // Calls `on_update` for every update until it says false or the coordinator ends the stream,
  // which that does when the run is at rest and when it ends itself. Unavailable when the
  // connection was lost.
  absl::Status WatchRun(const std::string& run, uint64_t after_step,
                        absl::FunctionRef<bool(const v1::WatchRunResponse&)> on_update);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();
  absl::StatusOr<v1::NodeSummary> ShowNode(const std::string& node);
  absl::StatusOr<std::string> DrainNode(const std::string& node);
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string& run);
  absl::StatusOr<v1::VersionResponse> Version();

  // Uploads what the coordinator does not have yet. `progress(done, total)` in chunks.
  absl::Status Upload(const data::DatasetIndex& index, const std::string& path,
                      absl::FunctionRef<void(uint64_t, uint64_t)> progress);
  absl::Status StoreShard(const checkpoint::EncodedShard& shard);
  // A whole small data set, checked against its id. ResourceExhausted if it is longer.
  absl::StatusOr<std::string> FetchDataset(const std::string& id, uint64_t bytes_max);
  // The bytes of a shard, not yet checked against the hash; at most bytes_max.
  absl::StatusOr<std::string> FetchShard(const std::string& sha256, uint64_t bytes_max);

 private:
  class Transfer;

  Client() = default;
  void Prepare(grpc::ClientContext& call, absl::Duration timeout) const;
  // One small call, which tells "nobody there" from everything else that can go wrong.
  absl::Status CheckReachable();
  absl::Status Unreachable(const grpc::Status& status) const;
  // The error of a call on a connection that once worked.
  absl::Status Convert(const grpc::Status& status);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                const Request& request, absl::Duration timeout);

  std::string address_;
  std::string source_;  // how the address was found
  std::unique_ptr<daemon::Credentials> credentials_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Storage::Stub> storage_;
};

}  // namespace longhaul::cli

#endif  // LONGHAUL_CLI_CLIENT_H_
