#include "data/token_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string Header(int32_t magic, int32_t version, int32_t tokens) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return Bytes(header);
}

absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path, TokenFormat format) {
  const bool text = format == TokenFormat::kUint8;
  return TokenSource::Open(path, format, text ? TokenHeader::kNone : TokenHeader::kLlmc);
}

class TokenSourceTest : public testing::Test {
 protected:
  void Write(absl::string_view bytes) { ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok()); }

  std::string ErrorOf(absl::string_view bytes, TokenFormat format) {
    Write(bytes);
    const auto source = Open(path_, format);
    EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(source.status().message(), HasSubstr(path_));
    return std::string(source.status().message());
  }

  std::vector<int32_t> Tokens(absl::string_view bytes, TokenFormat format) {
    Write(bytes);
    const auto source = Open(path_, format);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    std::vector<int32_t> tokens((*source)->size());
    (*source)->Read(0, absl::MakeSpan(tokens));
    return tokens;
  }

  const TestFolder test_folder_{"token-source-test"};
  const std::string& folder_ = test_folder_.path();
  const std::string path_ = folder_ + "/tokens";
};

TEST_F(TokenSourceTest, ReadsEveryFormat) {
  EXPECT_THAT(Tokens("a\xFFz", TokenFormat::kUint8), ElementsAre(97, 255, 122));
  EXPECT_THAT(Tokens(Bytes<uint16_t>({1, 65535, 3}), TokenFormat::kUint16),
              ElementsAre(1, 65535, 3));
  EXPECT_THAT(Tokens(Bytes<uint32_t>({1, 128255}), TokenFormat::kUint32), ElementsAre(1, 128255));
  EXPECT_THAT(Tokens(Bytes<int8_t>({1, 127}), TokenFormat::kInt8), ElementsAre(1, 127));
  EXPECT_THAT(Tokens(Bytes<int16_t>({1, 32767}), TokenFormat::kInt16), ElementsAre(1, 32767));
  EXPECT_THAT(Tokens(Bytes<int32_t>({1, 128255}), TokenFormat::kInt32), ElementsAre(1, 128255));
  EXPECT_THAT(Tokens(Bytes<int64_t>({1, 128255}), TokenFormat::kInt64), ElementsAre(1, 128255));
  EXPECT_THAT(Tokens(absl::string_view("\x02\x01\x04\x03", 4), TokenFormat::kUint16),
              ElementsAre(0x0102, 0x0304));
}

TEST_F(TokenSourceTest, ReadsPartsAndFindsTheMaximum) {
  Write(Bytes<uint16_t>({5, 9, 7, 2}));
  const auto source = *Open(path_, TokenFormat::kUint16);
  std::vector<int32_t> two(2);
  source->Read(1, absl::MakeSpan(two));
  EXPECT_THAT(two, ElementsAre(9, 7));
  source->Read(2, absl::MakeSpan(two));
  EXPECT_THAT(two, ElementsAre(7, 2));
  source->Read(4, {});
  EXPECT_EQ(source->MaxToken(), 9);
  EXPECT_DEATH(source->Read(3, absl::MakeSpan(two)), "tokens 3");
  EXPECT_DEATH(source->Read(-1, absl::MakeSpan(two)), "tokens -1");
  EXPECT_DEATH(source->Read(std::numeric_limits<int64_t>::max(), absl::MakeSpan(two)), "tokens");
}

TEST_F(TokenSourceTest, IdsBeyondInt32AreLargerThanAnyVocabulary) {
  Write(Bytes<uint32_t>({1, 0xFFFFFFFF}));
  const auto source = *Open(path_, TokenFormat::kUint32);
  EXPECT_EQ(source->MaxToken(), std::numeric_limits<int32_t>::max());
  std::vector<int32_t> one(1);
  source->Read(1, absl::MakeSpan(one));
  EXPECT_EQ(one[0], std::numeric_limits<int32_t>::max());
}

TEST_F(TokenSourceTest, NegativeIdsAreLargerThanAnyVocabulary) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(Tokens(Bytes<int8_t>({-1, 2}), TokenFormat::kInt8), ElementsAre(kMax, 2));
  EXPECT_THAT(Tokens(Bytes<int16_t>({-1, 2}), TokenFormat::kInt16), ElementsAre(kMax, 2));
  EXPECT_THAT(Tokens(Bytes<int32_t>({-1, 2}), TokenFormat::kInt32), ElementsAre(kMax, 2));
  EXPECT_THAT(Tokens(Bytes<int64_t>({-1, int64_t{1} << 40}), TokenFormat::kInt64),
              ElementsAre(kMax, kMax));
}

TEST_F(TokenSourceTest, SkipsHeaders) {
  EXPECT_THAT(Tokens(Header(20240520, 1, 2) + Bytes<uint16_t>({7, 8}), TokenFormat::kUint16),
              ElementsAre(7, 8));
  EXPECT_THAT(Tokens(Header(20240801, 7, 1) + Bytes<uint32_t>({9}), TokenFormat::kUint32),
              ElementsAre(9));
  // As bytes, a file is what it is.
  EXPECT_EQ(Tokens(Header(20240520, 1, 0), TokenFormat::kUint8).size(), 1024u);
}

TEST_F(TokenSourceTest, RefusesBadHeaders) {
  const std::string two = Bytes<uint16_t>({7, 8});
  EXPECT_THAT(ErrorOf(Header(20240520, 1, 3) + two, TokenFormat::kUint16),
              HasSubstr("announces 3 tokens in its header but holds 2"));
  EXPECT_THAT(ErrorOf(Header(20240520, 1, -1) + two, TokenFormat::kUint16),
              HasSubstr("announces -1"));
  EXPECT_THAT(ErrorOf(Header(20240520, 1, 0), TokenFormat::kUint16), HasSubstr("announces 0"));
  EXPECT_THAT(ErrorOf(Header(20240520, 2, 2) + two, TokenFormat::kUint16),
              HasSubstr("header of version 2; this build reads version 1"));
  EXPECT_THAT(ErrorOf(Header(20240801, 7, 1) + two, TokenFormat::kUint16),
              HasSubstr("set data.tokenizer: uint32"));
  EXPECT_THAT(ErrorOf(Header(20240520, 1, 2) + two, TokenFormat::kUint32),
              HasSubstr("set data.tokenizer: uint16"));
  EXPECT_THAT(ErrorOf(Header(20240520, 1, 2).substr(0, 1022), TokenFormat::kUint16),
              HasSubstr("ends within its llm.c header"));
}

TEST_F(TokenSourceTest, RefusesOddEmptyMissingAndUnreadable) {
  EXPECT_THAT(ErrorOf("", TokenFormat::kUint8), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf("abc", TokenFormat::kUint16),
              HasSubstr("3 bytes, not a whole number of uint16 tokens"));
  EXPECT_THAT(ErrorOf("abcdef", TokenFormat::kUint32), HasSubstr("uint32 tokens"));
  const auto missing = Open(folder_ + "/none", TokenFormat::kUint8);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr(folder_ + "/none"));
  const auto folder = Open(folder_, TokenFormat::kUint8);
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenSourceTest, RefusesWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  Write("abc");
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  const auto source = Open(path_, TokenFormat::kUint8);
  EXPECT_EQ(source.status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace longhaul::data
