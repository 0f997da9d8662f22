// A training file as a sequence of token ids.
#ifndef LONGHAUL_DATA_TOKEN_SOURCE_H_
#define LONGHAUL_DATA_TOKEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longhaul::data {

// Bytes per token and how they are read. kBytes: one byte is one token.
enum class TokenFormat { kBytes, kUint16, kUint32 };

// Read-only memory map of a file, which must not be shortened while it is open; thread-safe. In
// files of uint16 or uint32 tokens (little-endian), llm.c's header of 256 int32 numbers is
// recognised by its magic number, checked against the format and the file's length, and skipped:
// magic 20240520, version 1 for uint16; magic 20240801, version 7 for uint32.
class TokenSource {
 public:
  // Errors name the path: missing, unreadable, empty, not a whole number of tokens, bad header.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path,
                                                           TokenFormat format);
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  // Copies tokens [begin, begin + out.size()); the range must lie inside. Ids beyond int32 become
  // its maximum, which no vocabulary reaches.
  virtual void Read(int64_t begin, absl::Span<int32_t> out) const = 0;
  // The largest token id as Read gives it, found by one scan; for checking against the vocabulary.
  virtual int32_t MaxToken() const = 0;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_TOKEN_SOURCE_H_
