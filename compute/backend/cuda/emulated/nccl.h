// NCCL, as far as Longhaul uses it, between threads of one process: found instead of the library's
// header by its place in the include path. Like a non-blocking communicator it never waits in a
// call: a collective is queued on its stream by a later look at the communicator's state, and the
// stream has not run it until all ranks have come to it.
#ifndef LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_NCCL_H_
#define LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_NCCL_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t { ncclFloat32 = 7, ncclFloat64 = 8 };
enum ncclRedOp_t { ncclSum = 0 };

struct ncclUniqueId {
  char internal[128];
};
using ncclComm_t = struct EmulatedCommunicator*;

// Of which only this much matters here.
struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { 1 }

// As NCCL's own, where nothing else is said.
ncclResult_t ncclGetVersion(int* version);
// Unique in this process.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
// Refuses blocking ones.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
// The other ranks' operations fail with ncclRemoteError, as over a network.
ncclResult_t ncclCommAbort(ncclComm_t comm);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
// In the order of the ranks, in place only.
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);

namespace longhaul::compute::emulated {

// How the emulated library is: the tests' way to break it, and to see what becomes of its
// communicators. Set while no call is under way.
struct Nccl {
  int version = 22809;
  ncclResult_t id_result = ncclSuccess;    // of ncclGetUniqueId
  ncclResult_t call_result = ncclSuccess;  // of every collective call at once
  ncclResult_t state = ncclSuccess;        // of a collective under way, and NCCL's words for it
  std::string words;
  bool finalize_hangs = false;
  // So far.
  int communicators = 0, destroyed = 0, aborted = 0;
};
Nccl& TheNccl();

}  // namespace longhaul::compute::emulated

#endif  // LONGHAUL_COMPUTE_BACKEND_CUDA_EMULATED_NCCL_H_
