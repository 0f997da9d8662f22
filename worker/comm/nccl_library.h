// NCCL's functions, found at run time: a daemon with CUDA also starts where NCCL is not installed,
// and its replicas then sum on their hosts.
#ifndef LONGHAUL_WORKER_COMM_NCCL_LIBRARY_H_
#define LONGHAUL_WORKER_COMM_NCCL_LIBRARY_H_

#include <nccl.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace longhaul::worker {

// Each member is NCCL's function of that name.
struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&::ncclCommFinalize) comm_finalize = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetLastError) get_last_error = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  int version = 0;  // of the library, as get_version says it
};

// FailedPrecondition, with what to do, if the library is not on this machine or older than the
// headers of the build. Once loaded it stays to the end of the process: NCCL has threads.
absl::StatusOr<NcclLibrary> LoadNccl();

// "2.28.9" of 22809.
inline std::string NcclVersionText(int version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

}  // namespace longhaul::worker

#endif  // LONGHAUL_WORKER_COMM_NCCL_LIBRARY_H_
