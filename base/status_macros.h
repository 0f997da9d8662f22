// Early returns for absl::Status and absl::StatusOr.
#ifndef LONGHAUL_BASE_STATUS_MACROS_H_
#define LONGHAUL_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

// Returns the status from the enclosing function unless it is OK.
#define LH_RETURN_IF_ERROR(expression)                            \
  do {                                                            \
    if (absl::Status lh_status = (expression); !lh_status.ok()) { \
      return lh_status;                                           \
    }                                                             \
  } while (false)

#define LH_STATUS_CONCAT_INNER(a, b) a##b
#define LH_STATUS_CONCAT(a, b) LH_STATUS_CONCAT_INNER(a, b)

// LH_ASSIGN_OR_RETURN(auto x, F()): declares or assigns x from a StatusOr, or returns its error.
#define LH_ASSIGN_OR_RETURN(target, expression) \
  LH_ASSIGN_OR_RETURN_IMPL(LH_STATUS_CONCAT(lh_result_, __LINE__), target, expression)
#define LH_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return std::move(result).status();       \
  target = *std::move(result)

namespace longhaul {

// The same code with "context: " in front of the message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace longhaul

#endif  // LONGHAUL_BASE_STATUS_MACROS_H_
