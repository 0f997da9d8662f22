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

// Read-only memory map of a file; thread-safe. A llm.c header (magic 20240520, version 1 = uint16,
// or 20251013-style uint32 variants) is recognised, checked against the file's length, and skipped.
class TokenSource {
 public:
  // Errors name the path: missing, unreadable, empty, not a whole number of tokens, bad header.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path,
                                                           TokenFormat format);
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  // Copies tokens [begin, begin + out.size()); the range must lie inside.
  virtual void Read(int64_t begin, absl::Span<int32_t> out) const = 0;
  // The largest token id, found by one scan; for checking against the vocabulary.
  virtual int32_t MaxToken() const = 0;
};

}  // namespace longhaul::data

#endif  // LONGHAUL_DATA_TOKEN_SOURCE_H_
