#include "daemon/rpc/status.h"

#include <grpc/support/time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kStatusBytesMax = 4096;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      WireText(status.message(), kStatusBytesMax));
}

absl::Status FromGrpc(const grpc::Status& status, absl::string_view context) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(ErrorCodeFromWire(status.error_code()),
                      absl::StrCat(context, context.empty() ? "" : ": ", status.error_message()));
}

absl::StatusCode ErrorCodeFromWire(int32_t code) {
  const bool known = code > 0 && code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  return known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
}

std::string WireText(absl::string_view text, size_t bytes_max) {
  std::string result;
  while (!text.empty()) {
    const size_t size = Utf8CharacterBytes(text);
    const absl::string_view character = size == 0 ? "?" : text.substr(0, size);
    if (result.size() + character.size() > bytes_max) break;
    absl::StrAppend(&result, character);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

void EndAfter(grpc::ClientContext& context, absl::Duration duration) {
  const absl::Duration bounded = std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365));
  context.set_deadline(gpr_time_from_millis(absl::ToInt64Milliseconds(bounded), GPR_TIMESPAN));
}

}  // namespace longhaul::daemon
