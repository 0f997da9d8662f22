// Private to the host: people's requests that wait for the core's reply.
#ifndef LONGHAUL_COORDINATOR_HOST_REQUEST_TABLE_H_
#define LONGHAUL_COORDINATOR_HOST_REQUEST_TABLE_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace longhaul::coordinator {

// Thread-safe.
class RequestTable {
 public:
  explicit RequestTable(Clock& clock) : clock_(clock) {}

  // A new request's number.
  uint64_t Open();
  // The answer; nothing happens if nobody waits for it any more.
  void Resolve(uint64_t request, const absl::StatusOr<std::string>& answer);
  // Waits for the answer and forgets the request.
  absl::StatusOr<std::string> Wait(uint64_t request, absl::Time deadline);
  // Answers all with `status`, now and from now on.
  void Close(const absl::Status& status);

 private:
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  uint64_t newest_ = 0;
  std::map<uint64_t, std::optional<absl::StatusOr<std::string>>> requests_;
  std::optional<absl::Status> closed_;
};

}  // namespace longhaul::coordinator

#endif  // LONGHAUL_COORDINATOR_HOST_REQUEST_TABLE_H_
