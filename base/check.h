// CHECK for broken invariants: a bug, never something a peer, a file or a user can cause.
// The process dies with the location and the values; the supervisor restarts it.
#ifndef LONGHAUL_BASE_CHECK_H_
#define LONGHAUL_BASE_CHECK_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace longhaul {

// Prints "file:line: check failed: condition: message" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace longhaul

// LH_CHECK(condition, pieces...): pieces are joined with absl::StrCat, evaluated only on failure.
#define LH_CHECK(condition, ...)                                            \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      ::longhaul::CheckFailed(__FILE__, __LINE__, #condition,               \
                              absl::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                       \
  } while (false)

#endif  // LONGHAUL_BASE_CHECK_H_
