// Comparison of secrets.
#ifndef LONGHAUL_BASE_CONSTANT_TIME_H_
#define LONGHAUL_BASE_CONSTANT_TIME_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace longhaul {

// Whether the two are equal, in a time that depends on `given` alone, so that who guesses learns
// nothing about `secret` from how long a refusal takes. An empty secret equals nothing.
inline bool EqualInConstantTime(absl::string_view given, absl::string_view secret) {
  if (secret.empty()) return false;
  volatile unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference = difference | static_cast<unsigned char>(given[i] ^ secret[i % secret.size()]);
  }
  return difference == 0;
}

}  // namespace longhaul

#endif  // LONGHAUL_BASE_CONSTANT_TIME_H_
