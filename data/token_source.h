// A training file as a sequence of token ids.
#ifndef LONGHAUL_DATA_TOKEN_SOURCE_H_
#define LONGHAUL_DATA_TOKEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/token_format.h"

namespace longhaul::data {

// What may stand in front of the tokens. kLlmc: a header that begins with one of llm.c's magic
// numbers is checked against the format and the file's length, and skipped; there need be none.
enum class TokenHeader { kNone, kLlmc };

// Read-only memory map of a file, which must not be shortened while it is open; thread-safe.
class TokenSource {
 public:
  // Errors name the path: missing, unreadable, empty, not a whole number of tokens, bad header.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path,
                                                           TokenFormat format, TokenHeader header);
  virtual ~TokenSource() = default;

  virtual int64_t size() const = 0;
  // Copies tokens [begin, begin + out.size()); the range must lie inside. Ids that are negative or
  // beyond int32 become its maximum, which no vocabulary reaches.
  virtual void Read(int64_t begin, absl::Span<int32_t> out) const = 0;
  // The largest token id as Read gives it, found by one scan; for checking against the vocabulary.
  virtual int32_t MaxToken() const = 0;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_TOKEN_SOURCE_H_
