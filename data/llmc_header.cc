#include "data/llmc_header.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace longhaul::data {
namespace {

constexpr size_t kHeaderBytes = 256 * sizeof(int32_t);

struct HeadedFormat {
  int32_t magic;
  int32_t version;
  TokenFormat format;
};

constexpr HeadedFormat kHeadedFormats[] = {{20240520, 1, TokenFormat::kUint16},
                                           {20240801, 7, TokenFormat::kUint32}};

int32_t HeaderNumber(absl::string_view bytes, size_t position) {
  int32_t number = 0;
  std::memcpy(&number, bytes.data() + position * sizeof(number), sizeof(number));
  return number;
}

const HeadedFormat* FindHeaded(absl::string_view bytes) {
  if (bytes.size() < sizeof(int32_t)) return nullptr;
  for (const HeadedFormat& headed : kHeadedFormats) {
    if (headed.magic == HeaderNumber(bytes, 0)) return &headed;
  }
  return nullptr;
}

}  // namespace

std::optional<TokenFormat> LlmcFormat(absl::string_view bytes) {
  const HeadedFormat* const headed = FindHeaded(bytes);
  if (headed == nullptr) return std::nullopt;
  return headed->format;
}

absl::StatusOr<size_t> CheckLlmcHeader(absl::string_view bytes, const std::string& path,
                                       TokenFormat format) {
  const HeadedFormat* const headed = FindHeaded(bytes);
  if (headed == nullptr) return 0;
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
    const absl::string_view name = TokenFormatName(headed->format);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds ", name, " tokens by its header, not ", TokenFormatName(format),
                     "; set data.tokenizer: ", name));
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

}  // namespace longhaul::data
