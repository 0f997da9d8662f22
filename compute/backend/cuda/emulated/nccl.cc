#include "compute/backend/cuda/emulated/nccl.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compute/backend/cuda/emulated/state.h"

using namespace longhaul::compute::emulated;  // NOLINT: the names of NCCL are global

namespace {

// A collective call of one rank.
struct Move {
  bool sums = false;
  void* values = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int root = 0;
  bool came = false, done = false;

  // Whether two ranks make the same call.
  bool Fits(const Move& other) const {
    return sums == other.sums && count == other.count && type == other.type && root == other.root;
  }
  size_t bytes() const { return count * (type == ncclFloat32 ? sizeof(float) : sizeof(double)); }
};

// The ranks of one id. Guarded by the runtime's mutex, as everything here.
struct Clique {
  explicit Clique(size_t ranks) : moves(ranks), aborted(ranks, false) {}
  size_t came = 0;                           // to the meeting
  std::vector<std::shared_ptr<Move>> moves;  // that each rank has come to
  std::vector<bool> aborted;
  bool broken = false;  // a rank was aborted, or the moves do not fit
  bool has_met() const { return came == moves.size(); }
};

std::map<std::string, std::shared_ptr<Clique>>& Cliques() {
  static std::map<std::string, std::shared_ptr<Clique>> cliques;
  return cliques;
}

template <typename T>
void Sum(const std::vector<std::shared_ptr<Move>>& moves) {
  for (size_t i = 0; i < moves[0]->count; ++i) {
    T sum = 0;
    for (const auto& move : moves) sum += static_cast<const T*>(move->values)[i];
    for (const auto& move : moves) static_cast<T*>(move->values)[i] = sum;
  }
}

// The move of all ranks, once they have come to it.
void PerformIfAllCame(Clique& clique) {
  const auto missing = [](const std::shared_ptr<Move>& move) { return move == nullptr; };
  if (std::any_of(clique.moves.begin(), clique.moves.end(), missing)) return;
  const Move& first = *clique.moves[0];
  for (const auto& move : clique.moves) {
    if (!move->Fits(first)) clique.broken = true;
  }
  if (clique.broken) return;
  if (first.sums) {
    first.type == ncclFloat32 ? Sum<float>(clique.moves) : Sum<double>(clique.moves);
  } else {
    const void* const root = clique.moves[static_cast<size_t>(first.root)]->values;
    for (const auto& move : clique.moves) {
      if (move->values != root && move->count > 0) std::memcpy(move->values, root, move->bytes());
    }
  }
  for (auto& move : clique.moves) {
    move->done = true;
    move = nullptr;
  }
}

// What the stream does, again and again until it returns true: an aborted kernel leaves.
bool Run(Clique& clique, size_t rank, const std::shared_ptr<Move>& move) {
  if (move->done || clique.aborted[rank]) return true;
  if (!move->came) {
    move->came = true;
    clique.moves[rank] = move;
    PerformIfAllCame(clique);
  }
  return move->done;
}

}  // namespace

struct EmulatedCommunicator {
  size_t rank = 0;
  std::shared_ptr<Clique> clique;
  std::shared_ptr<Move> move;     // the last
  cudaStream_t stream = nullptr;  // that the move is still to be queued on; or null
  bool finalizing = false;
  std::string words;
};

namespace {

// Those of devices that hang are there when the process ends.
std::map<ncclComm_t, std::unique_ptr<EmulatedCommunicator>>& Communicators() {
  static auto& all = *new std::map<ncclComm_t, std::unique_ptr<EmulatedCommunicator>>;
  return all;
}

}  // namespace

namespace longhaul::compute::emulated {

Nccl& TheNccl() {
  static Nccl nccl;
  return nccl;
}

}  // namespace longhaul::compute::emulated

namespace {

ncclResult_t Begin(ncclComm_t comm, const Move& move, cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  if (TheNccl().call_result != ncclSuccess) return TheNccl().call_result;
  if (comm->stream != nullptr || !comm->clique->has_met()) return ncclInvalidUsage;
  comm->move = std::make_shared<Move>(move);
  comm->stream = stream;
  return ncclInProgress;
}

ncclResult_t State(EmulatedCommunicator& comm) {
  Clique& clique = *comm.clique;
  if (comm.stream != nullptr) {
    Push(*Resolve(std::exchange(comm.stream, nullptr)),
         {[held = comm.clique, rank = comm.rank, move = comm.move] {
            return Run(*held, rank, move);
          },
          true});
    return ncclInProgress;
  }
  const bool moves = comm.move != nullptr && !comm.move->done;
  if (moves && TheNccl().state != ncclSuccess) return TheNccl().state;
  if ((moves || !clique.has_met()) && clique.broken) return ncclRemoteError;
  const bool ends = comm.finalizing && TheNccl().finalize_hangs;
  return ends || !clique.has_met() ? ncclInProgress : ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = TheNccl().version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Call call;
  if (TheNccl().id_result != ncclSuccess) return TheNccl().id_result;
  static int made = 0;
  *id = {};
  ++made;
  std::memcpy(id->internal, &made, sizeof(made));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const Call call;
  if (call.error() != cudaSuccess) return ncclUnhandledCudaError;
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto& clique = Cliques()[std::string(id.internal, sizeof(id.internal))];
  if (clique == nullptr) clique = std::make_shared<Clique>(static_cast<size_t>(ranks));
  ++clique->came;
  auto made = std::make_unique<EmulatedCommunicator>();
  *comm = made.get();
  Communicators()[*comm] = std::move(made);
  (*comm)->rank = static_cast<size_t>(rank);
  (*comm)->clique = clique;
  ++TheNccl().communicators;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Call call;
  *state = call.error() == cudaSuccess ? State(*comm) : ncclUnhandledCudaError;
  comm->words = *state == ncclRemoteError ? "a rank was aborted" : TheNccl().words;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call;
  comm->finalizing = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Call call;
  ++TheNccl().destroyed;
  Communicators().erase(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Call call;
  Clique& clique = *comm->clique;
  clique.broken = true;
  clique.aborted[comm->rank] = true;
  clique.moves[comm->rank] = nullptr;
  ++TheNccl().aborted;
  Communicators().erase(comm);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
  }
  return "unknown result";
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? TheNccl().words.c_str() : comm->words.c_str();
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  if (send != receive) return ncclInvalidUsage;
  return Begin(comm, {true, receive, count, type, 0, false, false}, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  if (send != receive) return ncclInvalidUsage;
  return Begin(comm, {false, receive, count, type, root, false, false}, stream);
}
