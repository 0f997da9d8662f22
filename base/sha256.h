// SHA-256 (FIPS 180-4), the content address of data sets and checkpoint shards. A cryptographic
// hash, because the bytes behind an address come from other hosts.
#ifndef LONGHAUL_BASE_SHA256_H_
#define LONGHAUL_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul {

// Incremental hashing. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  // 64 lower-case hexadecimal digits; ends the use of this object.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(absl::string_view bytes);

// Whether `text` is 64 lower-case hexadecimal digits.
bool IsSha256Hex(absl::string_view text);

}  // namespace longhaul

#endif  // LONGHAUL_BASE_SHA256_H_
