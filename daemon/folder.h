// The folder that belongs to one daemon: its lock, its name and its incarnation.
#ifndef LONGHAUL_DAEMON_FOLDER_H_
#define LONGHAUL_DAEMON_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longhaul::daemon {

// Whether the folder can be made, or is there, and takes new files. Tries it, and leaves nothing
// behind. InvalidArgument where only another configuration helps; ResourceExhausted for a full
// disk.
absl::Status CheckFolder(const std::string& folder);

// Owns the exclusive lock of a folder (flock on DIR/lock) until destroyed; the system lets go of it
// also when the process dies.
class FolderLock {
 public:
  // Makes the folder if it is not there. Another holder is named by its process id.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Who this worker is, over restarts.
struct Identity {
  std::string name;
  uint64_t incarnation = 0;  // of this start; higher than of every earlier one
};

// Reads DIR/identity, raises its incarnation and stores it before returning. `configured_name` wins
// over nothing and must agree with a stored name: a folder holds the shards and the history of one
// node. Without either the name is made from the host's. The folder must be locked.
absl::StatusOr<Identity> TakeIdentity(const std::string& folder,
                                      const std::string& configured_name);

}  // namespace longhaul::daemon

#endif  // LONGHAUL_DAEMON_FOLDER_H_
