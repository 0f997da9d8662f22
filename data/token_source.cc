#include "data/token_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace longhaul::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and are read in place");

constexpr size_t kHeaderBytes = 256 * sizeof(int32_t);

// A whole file in memory, read-only.
class Mapping {
 public:
  static absl::StatusOr<Mapping> Open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, "open", path);
    absl::Cleanup close = [fd] { ::close(fd); };
    struct stat info;
    if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat", path);
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
    }
    if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
    const size_t size = static_cast<size_t>(info.st_size);
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) return ErrnoStatus(errno, "map", path);
    return Mapping(static_cast<const char*>(start), size);
  }

  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (start_ != nullptr) ::munmap(const_cast<char*>(start_), size_);
  }

  absl::string_view bytes() const { return {start_, size_}; }

 private:
  Mapping(const char* start, size_t size) : start_(start), size_(size) {}

  const char* start_;
  size_t size_;
};

template <typename Token>
int32_t Saturated(Token token) {
  constexpr uint64_t kMax = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min<uint64_t>(token, kMax));
}

template <typename Token>
class MappedTokens : public TokenSource {
 public:
  // The tokens begin `offset` bytes into the file: 0 or kHeaderBytes, so that they are aligned.
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
    return Saturated(*std::max_element(tokens_.begin(), tokens_.end()));
  }

 private:
  const Mapping mapping_;
  const absl::Span<const Token> tokens_;
};

// llm.c's headed files (karpathy/llm.c, dev/data/data_common.py).
struct HeadedFormat {
  int32_t magic;
  int32_t version;
  TokenFormat format;
};
constexpr std::array<HeadedFormat, 2> kHeadedFormats = {
    {{20240520, 1, TokenFormat::kUint16}, {20240801, 7, TokenFormat::kUint32}}};

size_t TokenBytes(TokenFormat format) {
  switch (format) {
    case TokenFormat::kBytes:
      return 1;
    case TokenFormat::kUint16:
      return 2;
    case TokenFormat::kUint32:
      return 4;
  }
  LH_CHECK(false, "token format ", static_cast<int>(format));
  return 0;
}

absl::string_view FormatName(TokenFormat format) {
  return format == TokenFormat::kUint16 ? "uint16" : "uint32";
}

int32_t HeaderNumber(absl::string_view bytes, size_t position) {
  int32_t number = 0;
  std::memcpy(&number, bytes.data() + position * sizeof(number), sizeof(number));
  return number;
}

// Length of the header, 0 if there is none.
absl::StatusOr<size_t> CheckHeader(absl::string_view bytes, const std::string& path,
                                   TokenFormat format) {
  if (format == TokenFormat::kBytes || bytes.size() < sizeof(int32_t)) return 0;
  const auto headed =
      std::find_if(kHeadedFormats.begin(), kHeadedFormats.end(),
                   [&](const HeadedFormat& f) { return f.magic == HeaderNumber(bytes, 0); });
  if (headed == kHeadedFormats.end()) return 0;
  if (bytes.size() < kHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " ends within its llm.c header of ", kHeaderBytes, " bytes"));
  }
  if (HeaderNumber(bytes, 1) != headed->version) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has an llm.c header of version ",
                                                   HeaderNumber(bytes, 1),
                                                   "; this build reads version ", headed->version));
  }
  if (headed->format != format) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", FormatName(headed->format), " tokens by its header, not ",
                     FormatName(format), "; set data.tokenizer: ", FormatName(headed->format)));
  }
  const size_t tokens = (bytes.size() - kHeaderBytes) / TokenBytes(format);
  const int32_t announced = HeaderNumber(bytes, 2);
  if (announced < 1 || static_cast<size_t>(announced) != tokens) {
    return absl::InvalidArgumentError(absl::StrCat(path, " announces ", announced,
                                                   " tokens in its header but holds ", tokens,
                                                   "; it may be truncated"));
  }
  return kHeaderBytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenSource>> TokenSource::Open(const std::string& path,
                                                               TokenFormat format) {
  LH_ASSIGN_OR_RETURN(Mapping mapping, Mapping::Open(path));
  const absl::string_view bytes = mapping.bytes();
  if (bytes.size() % TokenBytes(format) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", bytes.size(), " bytes, not a whole number of ",
                     FormatName(format), " tokens; it may be truncated or of another format"));
  }
  LH_ASSIGN_OR_RETURN(const size_t offset, CheckHeader(bytes, path, format));
  switch (format) {
    case TokenFormat::kBytes:
      return std::make_unique<MappedTokens<uint8_t>>(std::move(mapping), offset);
    case TokenFormat::kUint16:
      return std::make_unique<MappedTokens<uint16_t>>(std::move(mapping), offset);
    case TokenFormat::kUint32:
      return std::make_unique<MappedTokens<uint32_t>>(std::move(mapping), offset);
  }
  LH_CHECK(false, "token format ", static_cast<int>(format));
  return nullptr;
}

}  // namespace longhaul::data
