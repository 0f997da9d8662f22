#include "data/megatron_index.h"

#include <functional>
#include <limits>

#include "base/file.h"
#include "base/testing/test_folder.h"
#include "data/testing/megatron.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MegatronIndexTest : public testing::Test {
 protected:
  absl::StatusOr<MegatronIndex> Open(absl::string_view bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    return MegatronIndex::Open(path_);
  }
  std::string ErrorOf(absl::string_view bytes) {
    const auto index = Open(bytes);
    EXPECT_EQ(index.status().code(), absl::StatusCode::kInvalidArgument) << index.status();
    EXPECT_THAT(std::string(index.status().message()), HasSubstr(path_));
    return std::string(index.status().message());
  }
  std::string ErrorOf(const std::function<void(MegatronParts&)>& change) {
    MegatronParts parts = MegatronDocuments({3, 2, 4});
    change(parts);
    return ErrorOf(parts.Bytes());
  }

  const TestFolder test_folder_{"megatron-index-test"};
  const std::string& folder_ = test_folder_.path();
  const std::string path_ = folder_ + "/x.idx";
};

// Written by Megatron-LM's _IndexWriter for two documents of 3 and 2 uint16 tokens.
constexpr unsigned char kFromMegatron[] = {
    0x4d, 0x4d, 0x49, 0x44, 0x49, 0x44, 0x58, 0, 0,  // MMIDIDX
    1,    0,    0,    0,    0,    0,    0,    0, 8,  // version, uint16
    2,    0,    0,    0,    0,    0,    0,    0,     // sequences
    3,    0,    0,    0,    0,    0,    0,    0,     // document marks
    3,    0,    0,    0,    2,    0,    0,    0,     // lengths
    0,    0,    0,    0,    0,    0,    0,    0,     // pointers
    6,    0,    0,    0,    0,    0,    0,    0,     //
    0,    0,    0,    0,    0,    0,    0,    0,     // documents
    1,    0,    0,    0,    0,    0,    0,    0,     //
    2,    0,    0,    0,    0,    0,    0,    0};

TEST_F(MegatronIndexTest, ReadsWhatMegatronWrites) {
  const auto index =
      Open(absl::string_view(reinterpret_cast<const char*>(kFromMegatron), sizeof(kFromMegatron)));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->format(), TokenFormat::kUint16);
  EXPECT_EQ(index->tokens(), 5);
  EXPECT_THAT(index->DocumentStarts(), ElementsAre(0, 3));
  EXPECT_TRUE(LooksLikeMegatronIndex(path_));
  EXPECT_FALSE(LooksLikeMegatronIndex(folder_ + "/none"));
}

TEST_F(MegatronIndexTest, DocumentsMayHaveSeveralSequencesOrNone) {
  MegatronParts parts = MegatronDocuments({3, 0, 2, 4, 1});
  parts.documents = {0, 0, 2, 3, 3, 5, 5};
  const auto index = Open(parts.Bytes());
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->tokens(), 10);
  EXPECT_THAT(index->DocumentStarts(), ElementsAre(0, 3, 5));
}

TEST_F(MegatronIndexTest, KnowsTheTypesThatTokensHave) {
  const TokenFormat formats[] = {TokenFormat::kUint8, TokenFormat::kInt8,  TokenFormat::kInt16,
                                 TokenFormat::kInt32, TokenFormat::kInt64, TokenFormat::kUint16};
  const uint8_t types[] = {1, 2, 3, 4, 5, 8};
  for (int i = 0; i < 6; ++i) {
    MegatronParts parts = MegatronDocuments({3, 2});
    parts.type = types[i];
    parts.pointers[1] = 3 * static_cast<int64_t>(TokenBytes(formats[i]));
    const auto index = Open(parts.Bytes());
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->format(), formats[i]);
    EXPECT_THAT(index->DocumentStarts(), ElementsAre(0, 3));
  }
  for (const uint8_t type : {0, 6, 7, 9, 255}) {
    EXPECT_THAT(ErrorOf([&](MegatronParts& p) { p.type = type; }), HasSubstr("tokens cannot have"));
  }
}

TEST_F(MegatronIndexTest, RefusesBadHeaders) {
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.magic[0] = 'm'; }), HasSubstr("MMIDIDX"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.version = 2; }), HasSubstr("version 2"));
  EXPECT_THAT(ErrorOf("MMIDIDX"), HasSubstr("does not begin"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  const std::string whole = MegatronDocuments({3, 2, 4}).Bytes();
  for (size_t length = 9; length < whole.size(); ++length) {
    EXPECT_THAT(ErrorOf(whole.substr(0, length)), HasSubstr(length < 34 ? "ends" : "truncated"));
  }
  EXPECT_THAT(ErrorOf(whole + std::string(3, '\0')), HasSubstr("sequence modes"));
  EXPECT_THAT(ErrorOf(whole + "x"), HasSubstr("do not hold exactly"));
}

TEST_F(MegatronIndexTest, RefusesCountsThatOverflow) {
  constexpr int64_t kHuge[] = {4, int64_t{1} << 32, int64_t{1} << 60, int64_t{1} << 62,
                               std::numeric_limits<int64_t>::max()};
  for (const int64_t count : kHuge) {
    EXPECT_THAT(ErrorOf([&](MegatronParts& p) { p.sequence_count = count; }), HasSubstr("hold"));
    if (count == 4) continue;  // the right one
    EXPECT_THAT(ErrorOf([&](MegatronParts& p) { p.document_count = count; }), HasSubstr("hold"));
  }
  std::string wraps = MegatronDocuments({3, 2, 4}).Bytes();
  wraps.replace(18, 8, 8, '\xff');
  EXPECT_THAT(ErrorOf(wraps), HasSubstr("18446744073709551615 sequences"));
}

TEST_F(MegatronIndexTest, RefusesSequencesThatDoNotFollowOneAnother) {
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.lengths[1] = -2; }), HasSubstr("length -2"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.lengths[1] = 3; }), HasSubstr("begins at byte 10"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.pointers[0] = 2; }), HasSubstr("begins at byte 2"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.pointers[2] = -10; }), HasSubstr("byte -10"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.pointers[2] = 11; }), HasSubstr("byte 11"));
  EXPECT_THAT(ErrorOf(MegatronDocuments({0, 0}).Bytes()), HasSubstr("no tokens"));
  EXPECT_THAT(ErrorOf(MegatronDocuments({}).Bytes()), HasSubstr("no tokens"));
  // Each length is allowed, their sum is not.
  const std::vector<int32_t> large(600, std::numeric_limits<int32_t>::max());
  EXPECT_THAT(ErrorOf(MegatronDocuments(large).Bytes()), HasSubstr("more than"));
}

TEST_F(MegatronIndexTest, RefusesDocumentsOutOfOrder) {
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.documents = {1, 2, 3}; }), HasSubstr("sequence 1"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) {
                p.documents = {0, 2, 1, 3};
              }),
              HasSubstr("before document 1"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.documents = {0, 2}; }), HasSubstr("there are 3"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.documents = {0, 4}; }), HasSubstr("sequence 4"));
  EXPECT_THAT(ErrorOf([](MegatronParts& p) { p.documents = {}; }), HasSubstr("no document marks"));
}

}  // namespace
}  // namespace longhaul::data
