#include "daemon/rpc/admin_server.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "daemon/rpc/protocol.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/summaries.h"
#include "daemon/rpc/wire_check.h"

namespace longhaul::daemon {
namespace {

template <typename Response>
grpc::Status Answer(const absl::StatusOr<std::string>& text, Response* response) {
  if (!text.ok()) return ToGrpc(text.status());
  response->set_text(WireText(*text, kTextBytesMax));
  return grpc::Status::OK;
}

absl::Status NoRun(const std::string& run) {
  return absl::NotFoundError(
      absl::StrCat("there is no run '", run, "'; longhaul run ls lists them"));
}

}  // namespace

absl::Status AdminServer::Check(const grpc::ServerContext& context, absl::string_view what,
                                const std::string& name) const {
  LH_RETURN_IF_ERROR(parts_.credentials.CheckCall(context));
  return ValidateName(what, name);
}

absl::StatusOr<std::string> AdminServer::Ask(const grpc::ServerContext& context,
                                             coordinator::CoordinatorHost::PersonEvent event) {
  if (context.IsCancelled()) return absl::CancelledError("who asked has left");
  return parts_.host.Request(std::move(event), parts_.clock.Now() + kRequestMax);
}

absl::StatusOr<std::string> AdminServer::Start(const grpc::ServerContext& context,
                                               const v1::StartRunRequest& request) {
  const size_t bytes = std::max(request.spec_json().size(), request.checkpoint_json().size());
  if (bytes > kJsonBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the run's specification has ", bytes,
                                                   " bytes, more than the ", kJsonBytesMax,
                                                   " allowed"));
  }
  LH_ASSIGN_OR_RETURN(run::RunSpec spec, run::FromJson(request.spec_json()));
  LH_RETURN_IF_ERROR(data_check_.Check(spec));
  if (spec.from.empty() != request.checkpoint_json().empty()) {
    return absl::InvalidArgumentError(
        "a run with model.from, and no other, is started with the checkpoint of its weights");
  }
  if (!spec.from.empty()) return StartFrom(context, request.checkpoint_json(), std::move(spec));
  coordinator::StartRun event;
  event.spec = std::move(spec);
  return Ask(context, std::move(event));
}

absl::StatusOr<std::string> AdminServer::StartFrom(const grpc::ServerContext& context,
                                                   const std::string& checkpoint_json,
                                                   run::RunSpec spec) {
  LH_ASSIGN_OR_RETURN(checkpoint::Manifest manifest, checkpoint::ManifestFromJson(checkpoint_json));
  if (manifest.run != spec.name || manifest.epoch != Epoch() || manifest.step != 0 ||
      manifest.tokens != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint is not that of step 0 of run ", spec.name));
  }
  const absl::Time deadline = parts_.clock.Now() + kRequestMax;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!parts_.clock.WaitUntil(lock, started_, deadline, [this] { return !is_starting_; })) {
      return absl::AbortedError(
          "other runs with weights of their own are being started; try again");
    }
    is_starting_ = true;
  }
  absl::StatusOr<std::string> answer =
      CommitAndStart(context, std::move(manifest), std::move(spec), deadline);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_starting_ = false;
  }
  started_.notify_one();
  return answer;
}

absl::StatusOr<std::string> AdminServer::CommitAndStart(const grpc::ServerContext& context,
                                                        checkpoint::Manifest manifest,
                                                        run::RunSpec spec, absl::Time deadline) {
  if (context.IsCancelled()) return absl::CancelledError("who asked has left");
  const std::string name = spec.name;
  const bool is_known = parts_.host.SnapshotRun(name).runs.contains(name);
  if (!is_known) LH_RETURN_IF_ERROR(parts_.host.checkpoints().Commit(manifest, spec));
  coordinator::StartRun event;
  event.spec = std::move(spec);
  event.checkpoint = std::move(manifest);
  absl::StatusOr<std::string> answer = parts_.host.Request(std::move(event), deadline);
  // A request that ran out of time may still be carried out.
  const bool is_refused = !answer.ok() && !absl::IsDeadlineExceeded(answer.status()) &&
                          !absl::IsCancelled(answer.status());
  if (is_refused && !is_known) parts_.host.checkpoints().Prune(name, 1);
  return answer;
}

grpc::Status AdminServer::StartRun(grpc::ServerContext* context, const v1::StartRunRequest* request,
                                   v1::StartRunResponse* response) {
  const absl::Status known = parts_.credentials.CheckCall(*context);
  return known.ok() ? Answer(Start(*context, *request), response) : ToGrpc(known);
}

grpc::Status AdminServer::StopRun(grpc::ServerContext* context, const v1::StopRunRequest* request,
                                  v1::StopRunResponse* response) {
  const absl::Status valid = Check(*context, "run name", request->run());
  if (!valid.ok()) return ToGrpc(valid);
  coordinator::StopRun event;
  event.run = request->run();
  return Answer(Ask(*context, event), response);
}

grpc::Status AdminServer::ResumeRun(grpc::ServerContext* context,
                                    const v1::ResumeRunRequest* request,
                                    v1::ResumeRunResponse* response) {
  const absl::Status valid = Check(*context, "run name", request->run());
  if (!valid.ok()) return ToGrpc(valid);
  if (request->stages() > kStagesMax) {
    return ToGrpc(absl::InvalidArgumentError(
        absl::StrCat("at most ", kStagesMax, " stages, got ", request->stages())));
  }
  coordinator::ResumeRun event;
  event.run = request->run();
  event.stages = static_cast<int>(request->stages());
  if (request->replicas() > uint32_t{kReplicasMax}) {
    return ToGrpc(absl::InvalidArgumentError(
        absl::StrCat("at most ", kReplicasMax, " replicas, got ", request->replicas())));
  }
  event.replicas = static_cast<int>(request->replicas());
  if (request->has_step()) {
    if (request->step() > kStepsMax) {
      return ToGrpc(
          absl::InvalidArgumentError(absl::StrCat("no run has ", request->step(), " steps")));
    }
    event.step = static_cast<int64_t>(request->step());
  }
  return Answer(Ask(*context, event), response);
}

grpc::Status AdminServer::ListRuns(grpc::ServerContext* context,
                                   const v1::ListRunsRequest* /*request*/,
                                   v1::ListRunsResponse* response) {
  if (const absl::Status known = parts_.credentials.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  const coordinator::State state = parts_.host.Snapshot();
  std::map<uint64_t, const coordinator::RunRecord*> by_age;
  for (const auto& [name, run] : state.runs) by_age[run.sequence] = &run;
  for (const auto& [sequence, run] : by_age) {
    auto summary = SummariseRun(state, *run, parts_.host, false);
    if (!summary.ok()) return ToGrpc(summary.status());
    *response->add_runs() = *std::move(summary);
  }
  return grpc::Status::OK;
}

absl::StatusOr<v1::RunSummary> AdminServer::FindRun(const std::string& run, bool whole) {
  const coordinator::State state = parts_.host.SnapshotRun(run);
  const auto found = state.runs.find(run);
  if (found == state.runs.end()) return NoRun(run);
  return SummariseRun(state, found->second, parts_.host, whole);
}

grpc::Status AdminServer::ShowRun(grpc::ServerContext* context, const v1::ShowRunRequest* request,
                                  v1::ShowRunResponse* response) {
  const absl::Status valid = Check(*context, "run name", request->run());
  if (!valid.ok()) return ToGrpc(valid);
  auto summary = FindRun(request->run(), true);
  if (!summary.ok()) return ToGrpc(summary.status());
  *response->mutable_summary() = *std::move(summary);
  return grpc::Status::OK;
}

grpc::Status AdminServer::WatchRun(grpc::ServerContext* context, const v1::WatchRunRequest* request,
                                   WatchWriter* writer) {
  const absl::Status valid = Check(*context, "run name", request->run());
  if (!valid.ok()) return ToGrpc(valid);
  return ToGrpc(Watch(*context, *request, *writer));
}

absl::StatusOr<bool> AdminServer::WriteSteps(const std::string& run, int64_t& after,
                                             WatchWriter& writer) {
  for (;;) {
    LH_ASSIGN_OR_RETURN(const std::vector<coordinator::CompletedStep> steps,
                        parts_.host.metrics().CompletedSteps(run, after, options_.watch_steps_max));
    for (const coordinator::CompletedStep& step : steps) {
      v1::WatchRunResponse response;
      *response.mutable_step() = ToWire(step);
      if (!writer.Write(response)) return false;
      after = step.step;
    }
    if (static_cast<int>(steps.size()) < options_.watch_steps_max) return true;
  }
}

absl::Status AdminServer::Watch(const grpc::ServerContext& context,
                                const v1::WatchRunRequest& request, WatchWriter& writer) {
  // No run has as many steps, so that a larger number asks for the run's end alone.
  auto after = static_cast<int64_t>(std::min(request.after_step(), kStepsMax));
  std::string state_written;
  while (!context.IsCancelled()) {
    const uint64_t version = parts_.host.version();
    // The state is read before the steps: once it says that the run is over, no step follows.
    const coordinator::State state = parts_.host.SnapshotRun(request.run());
    const auto found = state.runs.find(request.run());
    if (found == state.runs.end()) return NoRun(request.run());
    const bool over = IsOver(found->second.state);
    LH_ASSIGN_OR_RETURN(const bool there, WriteSteps(request.run(), after, writer));
    if (!there) break;
    const std::string state_now =
        absl::StrCat(coordinator::RunStateName(found->second.state), "/",
                     coordinator::RunPhaseName(found->second.phase), "/", found->second.reason, "/",
                     parts_.host.health().message());
    if (over || state_now != state_written) {
      v1::WatchRunResponse response;
      LH_ASSIGN_OR_RETURN(*response.mutable_summary(),
                          SummariseRun(state, found->second, parts_.host, over));
      if (!writer.Write(response) || over) break;
      state_written = state_now;
    }
    parts_.host.WaitForChange(version, parts_.clock.Now() + options_.watch_poll);
  }
  return absl::OkStatus();
}

grpc::Status AdminServer::ListNodes(grpc::ServerContext* context,
                                    const v1::ListNodesRequest* /*request*/,
                                    v1::ListNodesResponse* response) {
  if (const absl::Status known = parts_.credentials.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  const coordinator::State state = parts_.host.Snapshot();
  for (const auto& [name, node] : state.nodes) {
    *response->add_nodes() = SummariseNode(state, node, parts_.clock.Now());
  }
  for (const coordinator::LinkProfile& link : state.options.links) {
    *response->add_links() = ToWire(link);
  }
  return grpc::Status::OK;
}

grpc::Status AdminServer::ShowNode(grpc::ServerContext* context, const v1::ShowNodeRequest* request,
                                   v1::ShowNodeResponse* response) {
  const absl::Status valid = Check(*context, "node name", request->node());
  if (!valid.ok()) return ToGrpc(valid);
  const coordinator::State state = parts_.host.Snapshot();
  const auto found = state.nodes.find(request->node());
  if (found == state.nodes.end()) {
    return ToGrpc(absl::NotFoundError(
        absl::StrCat("there is no node '", request->node(), "'; longhaul node ls lists them")));
  }
  *response->mutable_node() = SummariseNode(state, found->second, parts_.clock.Now());
  return grpc::Status::OK;
}

grpc::Status AdminServer::DrainNode(grpc::ServerContext* context,
                                    const v1::DrainNodeRequest* request,
                                    v1::DrainNodeResponse* response) {
  const absl::Status valid = Check(*context, "node name", request->node());
  if (!valid.ok()) return ToGrpc(valid);
  coordinator::DrainNode event;
  event.node = request->node();
  return Answer(Ask(*context, event), response);
}

grpc::Status AdminServer::ListCheckpoints(grpc::ServerContext* context,
                                          const v1::ListCheckpointsRequest* request,
                                          v1::ListCheckpointsResponse* response) {
  const absl::Status valid = Check(*context, "run name", request->run());
  if (!valid.ok()) return ToGrpc(valid);
  const coordinator::State state = parts_.host.SnapshotRun(request->run());
  const auto run = state.runs.find(request->run());
  if (run == state.runs.end()) return ToGrpc(NoRun(request->run()));
  // The run's record decides what there is, for this, for an export and for a resume; a manifest's
  // file is its copy.
  std::vector<std::string> damaged;
  const auto files = parts_.shards.Manifests(request->run(), &damaged);
  size_t bytes = 0;
  for (const checkpoint::Manifest& manifest : CheckpointsOf(run->second)) {
    const auto step = static_cast<uint64_t>(manifest.step);
    if (step < request->from()) continue;
    const std::string json = checkpoint::ToJson(manifest);
    bytes += json.size() + kTextBytesMax;
    if (bytes > kJsonBytesMax && response->manifest_json_size() > 0) {
      response->set_next(step);
      break;
    }
    std::string note = CheckpointNote(run->second, manifest);
    if (!files.ok() || std::find(files->begin(), files->end(), manifest) == files->end()) {
      absl::StrAppend(&note, note.empty() ? "" : "; ",
                      "its manifest's file is damaged or gone, the run's record of it is used");
    }
    response->add_manifest_json(json);
    response->add_notes(WireText(note, kTextBytesMax));
  }
  return grpc::Status::OK;
}

grpc::Status AdminServer::Version(grpc::ServerContext* context,
                                  const v1::VersionRequest* /*request*/,
                                  v1::VersionResponse* response) {
  if (const absl::Status known = parts_.credentials.CheckCall(*context); !known.ok()) {
    return ToGrpc(known);
  }
  const ProtocolVersions own = OwnProtocol();
  response->set_build_version(own.build);
  response->set_oldest_protocol(own.oldest);
  response->set_newest_protocol(own.newest);
  return grpc::Status::OK;
}

}  // namespace longhaul::daemon
