#include "data/token_source.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/llmc_header.h"
#include "data/mapping.h"

namespace longhaul::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and are read in place");

// Negative numbers become large ones on the way.
template <typename Token>
int32_t Saturated(Token token) {
  constexpr uint64_t kMax = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min<uint64_t>(static_cast<uint64_t>(token), kMax));
}

template <typename Token>
class MappedTokens : public TokenSource {
 public:
  // The tokens begin `offset` bytes into the file, a multiple of their size.
  MappedTokens(Mapping mapping, size_t offset)
      : mapping_(std::move(mapping)),
        tokens_(reinterpret_cast<const Token*>(mapping_.bytes().data() + offset),
                (mapping_.bytes().size() - offset) / sizeof(Token)) {}

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }

  void Read(int64_t begin, absl::Span<int32_t> out) const override {
    const int64_t count = static_cast<int64_t>(out.size());
    LH_CHECK(begin >= 0 && count <= size() && begin <= size() - count, "tokens ", begin, " to ",
             begin, "+", count, " of ", size());
    const Token* const from = tokens_.data() + begin;
    std::transform(from, from + count, out.begin(), Saturated<Token>);
  }

  int32_t MaxToken() const override {
    int32_t largest = 0;
    for (const Token token : tokens_) largest = std::max(largest, Saturated(token));
    return largest;
  }

 private:
  const Mapping mapping_;
  const absl::Span<const Token> tokens_;
};

std::unique_ptr<TokenSource> MakeSource(Mapping mapping, size_t offset, TokenFormat format) {
  switch (format) {
    case TokenFormat::kUint8:
      return std::make_unique<MappedTokens<uint8_t>>(std::move(mapping), offset);
    case TokenFormat::kInt8:
      return std::make_unique<MappedTokens<int8_t>>(std::move(mapping), offset);
    case TokenFormat::kUint16:
      return std::make_unique<MappedTokens<uint16_t>>(std::move(mapping), offset);
    case TokenFormat::kInt16:
      return std::make_unique<MappedTokens<int16_t>>(std::move(mapping), offset);
    case TokenFormat::kUint32:
      return std::make_unique<MappedTokens<uint32_t>>(std::move(mapping), offset);
    case TokenFormat::kInt32:
      return std::make_unique<MappedTokens<int32_t>>(std::move(mapping), offset);
    case TokenFormat::kInt64:
      return std::make_unique<MappedTokens<int64_t>>(std::move(mapping), offset);
  }
  LH_CHECK(false, "token format ", static_cast<int>(format));
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenSource>> TokenSource::Open(const std::string& path,
                                                               TokenFormat format,
                                                               TokenHeader header) {
  LH_ASSIGN_OR_RETURN(Mapping mapping, Mapping::Open(path));
  const absl::string_view bytes = mapping.bytes();
  if (bytes.size() % TokenBytes(format) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes.size(), " bytes, not a whole number of ",
                     TokenFormatName(format), " tokens; it may be truncated or of another format"));
  }
  size_t offset = 0;
  if (header == TokenHeader::kLlmc) {
    LH_ASSIGN_OR_RETURN(offset, CheckLlmcHeader(bytes, path, format));
  }
  return MakeSource(std::move(mapping), offset, format);
}

}  // namespace longhaul::data
