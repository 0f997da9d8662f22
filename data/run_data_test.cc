#include "data/run_data.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "data/testing/megatron.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::data {
namespace {

using run::DocumentMode;
using run::Tokenizer;
using testing::ElementsAre;
using testing::HasSubstr;

class RunDataTest : public testing::Test {
 protected:
  RunDataTest() {
    spec_.model = {.layers = 1, .hidden = 4, .heads = 1, .context = 4, .vocab = 100};
  }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }
  void Write(absl::string_view name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
  }
  // 12 tokens in documents of 5, 4 and 3.
  void WritePair(const std::string& name) {
    Write(name + ".bin", NumberBytes<uint16_t>({1, 2, 3, 4, 9, 5, 6, 7, 9, 8, 8, 9}));
    Write(name + ".idx", MegatronDocuments({5, 4, 3}).Bytes());
  }
  absl::StatusOr<RunTokens> Open(absl::string_view name) {
    auto files = FindDataFiles(Path(name), spec_.data);
    if (!files.ok()) return files.status();
    return OpenTokens(*files, spec_.data);
  }
  std::string ErrorOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  // Where documents begin, seen through the public face.
  static std::vector<int64_t> Starts(const RunTokens& tokens) {
    const auto starts = tokens.documents.StartsIn(0, tokens.source->size());
    return {starts.begin(), starts.end()};
  }

  run::RunSpec spec_;
  const TestFolder test_folder_{"run-data-test"};
  const std::string& folder_ = test_folder_.path();
};

TEST_F(RunDataTest, TheFormatFollowsFromTheFile) {
  Write("text", "plain words");
  ASSERT_TRUE(Open("text").ok());
  EXPECT_EQ(spec_.data.tokenizer, Tokenizer::kBytes);

  std::vector<int32_t> header(256);
  header[0] = 20240801, header[1] = 7, header[2] = 2;
  Write("headed.bin", NumberBytes(header) + NumberBytes<uint32_t>({70000, 1}));
  spec_.data.tokenizer = Tokenizer::kAuto;
  const auto headed = Open("headed.bin");
  ASSERT_TRUE(headed.ok()) << headed.status();
  EXPECT_EQ(spec_.data.tokenizer, Tokenizer::kUint32);
  EXPECT_EQ(headed->source->MaxToken(), 70000);

  WritePair("pair");
  for (const char* name : {"pair", "pair.bin", "pair.idx"}) {
    spec_.data.tokenizer = Tokenizer::kAuto;
    const auto pair = Open(name);
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(spec_.data.tokenizer, Tokenizer::kMegatron);
    EXPECT_EQ(pair->source->size(), 12);
  }
}

TEST_F(RunDataTest, AFileThatTellsNothingIsNotGuessed) {
  Write("raw.bin", NumberBytes<uint16_t>({1, 2, 3}));
  const std::string error = ErrorOf(Open("raw.bin").status());
  EXPECT_THAT(error, HasSubstr("raw.bin"));
  EXPECT_THAT(error, HasSubstr("data.tokenizer: uint16 or uint32"));
  spec_.data.tokenizer = Tokenizer::kUint16;
  EXPECT_TRUE(Open("raw.bin").ok());
  spec_.data.tokenizer = Tokenizer::kAuto;
  EXPECT_EQ(Open("none").status().code(), absl::StatusCode::kNotFound);
  spec_.data.tokenizer = Tokenizer::kMegatron;
  const auto missing = Open("raw");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("raw.idx"));
}

TEST_F(RunDataTest, APairMustBelongTogether) {
  WritePair("pair");
  Write("pair.bin", NumberBytes<uint16_t>({1, 2, 3}));
  const std::string error = ErrorOf(Open("pair").status());
  EXPECT_THAT(error, HasSubstr("has 3 tokens, its index"));
  EXPECT_THAT(error, HasSubstr("has 12"));
  Write("pair.bin", "odd");
  EXPECT_THAT(ErrorOf(Open("pair").status()), HasSubstr("whole number of uint16"));
}

TEST_F(RunDataTest, DocumentsFollowFromTheIndexOrFromTheirLastToken) {
  WritePair("pair");
  const auto packed = Open("pair");
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(Starts(*packed), ElementsAre());
  for (const DocumentMode mode : {DocumentMode::kMasked, DocumentMode::kSeparate}) {
    spec_.data.documents = mode;
    EXPECT_THAT(Starts(*Open("pair")), ElementsAre(0, 5, 9));
    spec_.data.end_of_document = 8;  // wins over the index
    EXPECT_THAT(Starts(*Open("pair")), ElementsAre(0, 10, 11));
    spec_.data.end_of_document = run::kNoEndOfDocument;
  }
  Write("text", "one\ntwo\n\nthree\n");
  spec_.data.tokenizer = Tokenizer::kAuto;
  EXPECT_THAT(ErrorOf(Open("text").status()), HasSubstr("set data.end_of_document"));
  spec_.data.end_of_document = '\n';
  EXPECT_THAT(Starts(*Open("text")), ElementsAre(0, 4, 8, 9));
  spec_.data.end_of_document = '#';
  EXPECT_THAT(ErrorOf(Open("text").status()), HasSubstr("has no token 35"));
}

TEST_F(RunDataTest, TokensAreCheckedBeforeTraining) {
  WritePair("pair");
  EXPECT_TRUE(CheckTokens(*Open("pair"), spec_).ok());
  spec_.model.vocab = 9;
  EXPECT_THAT(ErrorOf(CheckTokens(*Open("pair"), spec_)), HasSubstr("token 9"));
  spec_.model.vocab = 100;
  spec_.model.context = 12;
  EXPECT_THAT(ErrorOf(CheckTokens(*Open("pair"), spec_)), HasSubstr("12 of 12 tokens"));
  spec_.model.context = 4;
  spec_.data.tokenizer = Tokenizer::kUint16;
  spec_.data.documents = DocumentMode::kMasked;
  spec_.data.end_of_document = 5;
  Write("same.bin", NumberBytes<uint16_t>(std::vector<uint16_t>(20, 5)));
  EXPECT_THAT(ErrorOf(CheckTokens(*Open("same.bin"), spec_)),
              HasSubstr("every document of the training part has one token"));
  Write("signed.bin", NumberBytes<int32_t>({1, 2, 3, 4, 5, -1}));
  Write("signed.idx", [] {
    MegatronParts parts = MegatronDocuments({6});
    parts.type = 4;
    return parts.Bytes();
  }());
  spec_.data = run::DataSpec();
  EXPECT_THAT(ErrorOf(CheckTokens(*Open("signed"), spec_)), HasSubstr("token that is negative"));
}

}  // namespace
}  // namespace longhaul::data
