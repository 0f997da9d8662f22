#include "worker/comm/nccl_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longhaul::worker {
namespace {

constexpr char kName[] = "libnccl.so.2";

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kName, " has no ", name, ": it is not the NCCL that this build needs"));
}

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl() {
  void* const library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat("NCCL is not to be had: ", error == nullptr ? kName : error,
                     "; install libnccl2 for sums between cards"));
  }
  NcclLibrary nccl;
  LH_RETURN_IF_ERROR(Find(library, "ncclGetVersion", nccl.get_version));
  if (const ncclResult_t result = nccl.get_version(&nccl.version); result != ncclSuccess) {
    return absl::FailedPreconditionError(absl::StrCat(kName, " does not say its version"));
  }
  if (nccl.version < NCCL_VERSION_CODE) {
    return absl::FailedPreconditionError(absl::StrCat(
        kName, " is version ", NcclVersionText(nccl.version), ", older than this build's ",
        NcclVersionText(NCCL_VERSION_CODE), "; install a newer libnccl2 for sums between cards"));
  }
  LH_RETURN_IF_ERROR(Find(library, "ncclGetUniqueId", nccl.get_unique_id));
  LH_RETURN_IF_ERROR(Find(library, "ncclCommInitRankConfig", nccl.comm_init_rank_config));
  LH_RETURN_IF_ERROR(Find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error));
  LH_RETURN_IF_ERROR(Find(library, "ncclCommFinalize", nccl.comm_finalize));
  LH_RETURN_IF_ERROR(Find(library, "ncclCommDestroy", nccl.comm_destroy));
  LH_RETURN_IF_ERROR(Find(library, "ncclCommAbort", nccl.comm_abort));
  LH_RETURN_IF_ERROR(Find(library, "ncclGetErrorString", nccl.get_error_string));
  LH_RETURN_IF_ERROR(Find(library, "ncclGetLastError", nccl.get_last_error));
  LH_RETURN_IF_ERROR(Find(library, "ncclAllReduce", nccl.all_reduce));
  LH_RETURN_IF_ERROR(Find(library, "ncclBroadcast", nccl.broadcast));
  return nccl;
}

}  // namespace longhaul::worker
