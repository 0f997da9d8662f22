#include "cli/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/target.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"

namespace longhaul::cli {
namespace {

constexpr absl::Duration kCallMax = absl::Seconds(30);
// Longer than the coordinator takes at most.
const absl::Duration kRequestMax = daemon::kRequestMax + absl::Minutes(1);
constexpr absl::Duration kConnectMax = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const Context& context) {
  LH_ASSIGN_OR_RETURN(const Target target, FindTarget(context));
  auto client = std::unique_ptr<Client>(new Client);
  client->address_ = target.address;
  client->source_ = target.source;
  LH_ASSIGN_OR_RETURN(client->credentials_, daemon::Credentials::Load(target.security));
  const auto channel =
      daemon::OpenChannel(target.address, context.coordinator_name, *client->credentials_);
  client->admin_ = v1::Admin::NewStub(channel);
  client->storage_ = v1::Storage::NewStub(channel);
  LH_RETURN_IF_ERROR(client->CheckReachable());
  return client;
}

void Client::Prepare(grpc::ClientContext& call, absl::Duration timeout) const {
  daemon::EndAfter(call, timeout);
  credentials_->Sign(call);
}

absl::Status Client::CheckReachable() {
  grpc::ClientContext call;
  Prepare(call, kConnectMax);
  v1::VersionResponse response;
  const grpc::Status status = admin_->Version(&call, v1::VersionRequest(), &response);
  const bool answered = status.error_code() != grpc::StatusCode::UNAVAILABLE &&
                        status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
  return answered ? daemon::FromGrpc(status, "") : Unreachable(status);
}

absl::Status Client::Unreachable(const grpc::Status& status) const {
  return absl::UnavailableError(absl::StrCat("cannot reach the coordinator at ", address_,
                                             " (from ", source_, "): ", status.error_message()));
}

absl::Status Client::Convert(const grpc::Status& status) {
  const bool is_late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (!is_late && status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return daemon::FromGrpc(status, "");
  }
  if (const absl::Status reachable = CheckReachable(); !reachable.ok()) return reachable;
  // It is there, so this is its answer, or that of a call whose end was lost.
  const std::string text = absl::StrCat("the coordinator at ", address_,
                                        " did not confirm it: ", status.error_message());
  if (!is_late) return absl::AbortedError(text);
  const bool is_said = absl::StrContains(text, "may still");
  return absl::DeadlineExceededError(
      absl::StrCat(text, is_said ? "" : "; it may still do what was asked"));
}

template <typename Request, typename Response>
absl::StatusOr<Response> Client::Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                                                              const Request&,
                                                                              Response*),
                                      const Request& request, absl::Duration timeout) {
  grpc::ClientContext call;
  Prepare(call, timeout);
  Response response;
  LH_RETURN_IF_ERROR(Convert((admin_.get()->*method)(&call, request, &response)));
  return response;
}

absl::StatusOr<std::string> Client::StartRun(const std::string& spec_json,
                                             const std::string& checkpoint_json,
                                             uint64_t data_bytes) {
  v1::StartRunRequest request;
  request.set_spec_json(spec_json);
  request.set_checkpoint_json(checkpoint_json);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::StartRun, request,
                                                kRequestMax + daemon::DataMax(data_bytes)));
  return response.text();
}

absl::StatusOr<std::string> Client::StopRun(const std::string& run) {
  v1::StopRunRequest request;
  request.set_run(run);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::StopRun, request, kRequestMax));
  return response.text();
}

absl::StatusOr<std::string> Client::ResumeRun(const std::string& run,
                                              const ResumeChanges& changes) {
  v1::ResumeRunRequest request;
  request.set_run(run);
  request.set_stages(static_cast<uint32_t>(changes.stages));
  request.set_replicas(static_cast<uint32_t>(changes.replicas));
  if (changes.step.has_value()) request.set_step(*changes.step);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::ResumeRun, request, kRequestMax));
  return response.text();
}

absl::StatusOr<v1::ListRunsResponse> Client::ListRuns() {
  return Call(&v1::Admin::Stub::ListRuns, v1::ListRunsRequest(), kCallMax);
}

absl::StatusOr<v1::RunSummary> Client::ShowRun(const std::string& run) {
  v1::ShowRunRequest request;
  request.set_run(run);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::ShowRun, request, kCallMax));
  return response.summary();
}

absl::Status Client::WatchRun(const std::string& run, uint64_t after_step,
                              absl::FunctionRef<bool(const v1::WatchRunResponse&)> on_update) {
  // No deadline: a run takes as long as it takes; keepalive ends the wait for a dead coordinator.
  grpc::ClientContext call;
  credentials_->Sign(call);
  v1::WatchRunRequest request;
  request.set_run(run);
  request.set_after_step(after_step);
  const auto reader = admin_->WatchRun(&call, request);
  v1::WatchRunResponse update;
  while (reader->Read(&update)) {
    if (on_update(update)) continue;
    call.TryCancel();
    reader->Finish();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  // A coordinator that ends cancels its streams.
  const bool lost = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                    status.error_code() == grpc::StatusCode::CANCELLED;
  return lost ? Unreachable(status) : daemon::FromGrpc(status, "");
}

absl::StatusOr<v1::ListNodesResponse> Client::ListNodes() {
  return Call(&v1::Admin::Stub::ListNodes, v1::ListNodesRequest(), kCallMax);
}

absl::StatusOr<v1::NodeSummary> Client::ShowNode(const std::string& node) {
  v1::ShowNodeRequest request;
  request.set_node(node);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::ShowNode, request, kCallMax));
  return response.node();
}

absl::StatusOr<std::string> Client::DrainNode(const std::string& node) {
  v1::DrainNodeRequest request;
  request.set_node(node);
  LH_ASSIGN_OR_RETURN(const auto response, Call(&v1::Admin::Stub::DrainNode, request, kRequestMax));
  return response.text();
}

absl::StatusOr<v1::ListCheckpointsResponse> Client::ListCheckpoints(const std::string& run) {
  v1::ListCheckpointsRequest request;
  request.set_run(run);
  v1::ListCheckpointsResponse all;
  for (;;) {
    LH_ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse part,
                        Call(&v1::Admin::Stub::ListCheckpoints, request, kCallMax));
    all.mutable_manifest_json()->MergeFrom(part.manifest_json());
    all.mutable_notes()->MergeFrom(part.notes());
    if (!part.has_next()) return all;
    if (part.next() <= request.from()) {
      return absl::InternalError("the coordinator lists the run's checkpoints without end");
    }
    request.set_from(part.next());
  }
}

absl::StatusOr<v1::VersionResponse> Client::Version() {
  return Call(&v1::Admin::Stub::Version, v1::VersionRequest(), kCallMax);
}

absl::Status Client::Upload(const data::DatasetIndex& index, const std::string& path,
                            absl::FunctionRef<void(uint64_t, uint64_t)> progress) {
  v1::BeginUploadRequest begin;
  begin.set_index_json(index.ToJson());
  v1::BeginUploadResponse missing;
  {
    grpc::ClientContext call;
    Prepare(call, kCallMax + daemon::DataMax(index.bytes));
    LH_RETURN_IF_ERROR(Convert(storage_->BeginUpload(&call, begin, &missing)));
  }
  const std::string id = index.Id();
  const uint64_t total = static_cast<uint64_t>(missing.missing_chunks_size());
  for (uint64_t done = 0; done < total; ++done) {
    const uint64_t chunk = missing.missing_chunks(static_cast<int>(done));
    if (chunk >= index.chunk_sha256.size()) {
      return absl::InternalError(absl::StrCat("the coordinator asked for chunk ", chunk, " of ",
                                              index.chunk_sha256.size()));
    }
    const uint64_t offset = chunk * data::kChunkBytes;
    v1::UploadChunkRequest request;
    request.set_dataset(id);
    request.set_chunk(chunk);
    LH_ASSIGN_OR_RETURN(
        *request.mutable_data(),
        ReadFileRange(path, offset, std::min(data::kChunkBytes, index.bytes - offset)));
    grpc::ClientContext call;
    Prepare(call, kCallMax);
    v1::UploadChunkResponse response;
    LH_RETURN_IF_ERROR(Convert(storage_->UploadChunk(&call, request, &response)));
    progress(done + 1, total);
  }
  v1::FinishUploadRequest finish;
  finish.set_dataset(id);
  v1::FinishUploadResponse finished;
  grpc::ClientContext call;
  Prepare(call, kRequestMax + daemon::DataMax(index.bytes));
  return Convert(storage_->FinishUpload(&call, finish, &finished));
}

}  // namespace longhaul::cli
