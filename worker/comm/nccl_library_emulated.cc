// In place of nccl_library.cc, for tests without a card.
#include "absl/strings/str_cat.h"
#include "worker/comm/nccl_library.h"

namespace longhaul::worker {

absl::StatusOr<NcclLibrary> LoadNccl() {
  NcclLibrary nccl;
  nccl.get_version = &ncclGetVersion;
  nccl.get_unique_id = &ncclGetUniqueId;
  nccl.comm_init_rank_config = &ncclCommInitRankConfig;
  nccl.comm_get_async_error = &ncclCommGetAsyncError;
  nccl.comm_finalize = &ncclCommFinalize;
  nccl.comm_destroy = &ncclCommDestroy;
  nccl.comm_abort = &ncclCommAbort;
  nccl.get_error_string = &ncclGetErrorString;
  nccl.get_last_error = &ncclGetLastError;
  nccl.all_reduce = &ncclAllReduce;
  nccl.broadcast = &ncclBroadcast;
  nccl.get_version(&nccl.version);
  return nccl;
}

}  // namespace longhaul::worker
