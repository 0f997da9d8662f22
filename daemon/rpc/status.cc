#include "daemon/rpc/status.h"

#include <grpc/support/time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longhaul::daemon {
namespace {

constexpr size_t kStatusBytesMax = 4096;

// Length of the UTF-8 character at the start of `text`; 0 if there is none (RFC 3629).
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  size_t size = 0;
  if (byte(0) >= 0xC2 && byte(0) <= 0xDF) size = 2;
  if (byte(0) >= 0xE0 && byte(0) <= 0xEF) size = 3;
  if (byte(0) >= 0xF0 && byte(0) <= 0xF4) size = 4;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool beyond = (byte(0) == 0xED && byte(1) > 0x9F) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : size;
}

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
    const size_t size = CharacterBytes(text);
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
