#include "cli/submit.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "checkpoint/hugging_face.h"
#include "data/testing/megatron.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/family.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;

class SubmitTest : public testing::Test {
 protected:
  SubmitTest() {
    EXPECT_TRUE(MakeDirectories(folder_ + "/texts").ok());
    Write("texts/corpus.txt", std::string(500, 'a') + std::string(500, '\xff'));
  }

  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder_, "/", name), bytes).ok());
  }
  absl::StatusOr<Submission> Prepare(const std::string& data, int vocab = 256) {
    Write("run.yaml", absl::StrCat("name: first\n"
                                   "model: {layers: 2, hidden: 8, heads: 2, context: 16, vocab: ",
                                   vocab, "}\ndata: {", data,
                                   "}\ntrain: {steps: 4, global_batch: 4, micro_batch: 2}\n"));
    return PrepareSubmission(folder_ + "/run.yaml");
  }
  void ExpectRefused(const absl::StatusOr<Submission>& submission, absl::StatusCode code,
                     const std::string& text) {
    EXPECT_EQ(submission.status().code(), code) << submission.status();
    EXPECT_THAT(std::string(submission.status().message()), HasSubstr(text));
  }

  const TestFolder test_folder_{"submit-test"};
  const std::string& folder_ = test_folder_.path();
};

TEST_F(SubmitTest, FindsTheDataBesideTheRunsFile) {
  const auto submission = Prepare("train: texts/corpus.txt, validation_fraction: 0.1");
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->uploads[0].path, folder_ + "/texts/corpus.txt");
  EXPECT_EQ(submission->spec.data.tokens, 1000);
  EXPECT_EQ(submission->spec.data.id, submission->uploads[0].index.Id());
  EXPECT_EQ(submission->uploads[0].index.bytes, 1000u);
  const auto absolute = Prepare(absl::StrCat("train: ", folder_, "/texts/../texts/corpus.txt"));
  ASSERT_TRUE(absolute.ok()) << absolute.status();
  EXPECT_EQ(absolute->uploads[0].path, folder_ + "/texts/corpus.txt");
  EXPECT_EQ(absolute->spec.data.id, submission->spec.data.id);
}

TEST_F(SubmitTest, ChecksTheFilesBeforeAnythingIsSent) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(Prepare("train: missing.txt"), absl::StatusCode::kNotFound, "missing.txt");
  ExpectRefused(Prepare("train: texts/corpus.txt", 255), invalid, "at least 256");
  ExpectRefused(Prepare("train: texts"), invalid, "texts");
  Write("short", "0123456789abcdef");  // exactly one context: no target for its last token
  ExpectRefused(Prepare("train: short"), invalid, "short");
  Write("empty", "");
  ExpectRefused(Prepare("train: empty"), invalid, "empty");
  ExpectRefused(Prepare("train: texts/corpus.txt, validation_fraction: 0.01"), invalid,
                "validation part");
}

TEST_F(SubmitTest, TokenFilesAreCheckedAsTokens) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  Write("odd.bin", std::string(1001, '\0'));
  ExpectRefused(Prepare("train: odd.bin, tokenizer: uint16"), invalid, "odd.bin");
  std::string big(4000, '\0');
  big.replace(400, 4, "\xff\xff\xff\xff");  // beyond every vocabulary
  Write("big.bin", big);
  ExpectRefused(Prepare("train: big.bin, tokenizer: uint32"), invalid,
                "negative or not below 2147483647");
  const auto submission = Prepare("train: texts/corpus.txt, tokenizer: uint16", 65536);
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->spec.data.tokens, 500);
}

TEST_F(SubmitTest, AMegatronPairIsTwoUploads) {
  Write("pair.bin", data::NumberBytes<uint16_t>(std::vector<uint16_t>(40, 7)));
  Write("pair.idx", data::MegatronDocuments({25, 15}).Bytes());
  const auto submission = Prepare("train: pair, documents: masked");
  ASSERT_TRUE(submission.ok()) << submission.status();
  ASSERT_EQ(submission->uploads.size(), 2u);
  EXPECT_EQ(submission->uploads[0].path, folder_ + "/pair.bin");
  EXPECT_EQ(submission->uploads[1].path, folder_ + "/pair.idx");
  EXPECT_EQ(submission->spec.data.tokenizer, run::Tokenizer::kMegatron);
  EXPECT_EQ(submission->spec.data.id, submission->uploads[0].index.Id());
  EXPECT_EQ(submission->spec.data.index_id, submission->uploads[1].index.Id());
  EXPECT_EQ(submission->spec.data.tokens, 40);
  EXPECT_TRUE(run::Validate(submission->spec).ok());
  Write("pair.idx", data::MegatronDocuments({25, 14}).Bytes());
  ExpectRefused(Prepare("train: pair"), absl::StatusCode::kInvalidArgument, "has 40 tokens");
}

TEST_F(SubmitTest, ReadsWeightsAndTokenizerOfModelFrom) {
  checkpoint::ModelWeights weights{{"gpt2", 2, 8, 2, 16, 256, true}, {}};
  const model::Graph graph = *model::BuildGraph(weights.spec);
  for (const model::Parameter& parameter : graph.parameters) {
    weights.parameters.emplace_back(parameter.elements(), 0.5f);
  }
  checkpoint::HuggingFaceFiles files = *checkpoint::ExportHuggingFace(weights);
  files.passed = {{"tokenizer.json", "{}"}};
  ASSERT_TRUE(checkpoint::WriteHuggingFace(files, folder_ + "/hf", true).ok());
  const std::string rest =
      "}\ndata: {train: texts/corpus.txt}\n"
      "train: {steps: 4, global_batch: 4, micro_batch: 2}\n";
  Write("run.yaml", absl::StrCat("name: first\nmodel: {from: hf, context: 8", rest));
  const auto submission = PrepareSubmission(folder_ + "/run.yaml");
  ASSERT_TRUE(submission.ok()) << submission.status();
  EXPECT_EQ(submission->weights->spec, submission->spec.model);
  EXPECT_EQ(submission->weights->parameters[1].size(), 64u);
  ASSERT_EQ(submission->uploads.size(), 2u);
  EXPECT_EQ(submission->uploads[1].path, folder_ + "/hf/tokenizer.json");
  EXPECT_EQ(submission->spec.tokenizer_files[0],
            "tokenizer.json " + submission->uploads[1].index.Id());
  EXPECT_TRUE(run::Validate(submission->spec).ok());
  Write("hf/model.safetensors",
        ReadFile(folder_ + "/hf/model.safetensors", 1 << 20)->substr(0, 2000));
  ExpectRefused(PrepareSubmission(folder_ + "/run.yaml"), absl::StatusCode::kInvalidArgument,
                "hf/model.safetensors");
  EXPECT_TRUE(ReadRunFile(folder_ + "/run.yaml").ok());  // what `plan` needs
}

TEST_F(SubmitTest, ARunsFileIsNamedWithItsMistake) {
  EXPECT_EQ(ReadRunFile(folder_ + "/none.yaml").status().code(), absl::StatusCode::kNotFound);
  Write("run.yaml", "name: first\nmodell: {}\n");
  const auto spec = ReadRunFile(folder_ + "/run.yaml");
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("run.yaml"));
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("'model'"));
  Write("run.yaml", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(ReadRunFile(folder_ + "/run.yaml").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::cli
