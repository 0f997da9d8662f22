#include "daemon/rpc/run_check.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "base/testing/test_folder.h"
#include "data/testing/megatron.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/run_spec.h"

namespace longhaul::daemon {
namespace {

using ::testing::HasSubstr;

class RunCheckTest : public testing::Test {
 protected:
  // A complete data set of these bytes.
  std::string Store(const std::string& bytes) {
    const std::string path = folder_ + "/file";
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    const auto index = data::IndexFile(path);
    EXPECT_TRUE(datasets_.Fill(*index, [&bytes](uint64_t) { return bytes; }).ok());
    return index->Id();
  }
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const absl::Status status = check_.Check(spec_);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const TestFolder test_folder_{"run-check-test"};
  const std::string& folder_ = test_folder_.path();
  data::DatasetStore datasets_{folder_ + "/datasets"};
  RunDataCheck check_{datasets_};
  run::RunSpec spec_ = [] {
    run::RunSpec spec;
    spec.model = {.layers = 1, .hidden = 8, .heads = 1, .context = 16, .vocab = 10};
    return spec;
  }();
};

TEST_F(RunCheckTest, BothFilesOfAPairMustBeThereAndFit) {
  spec_.data.tokenizer = run::Tokenizer::kMegatron;
  spec_.data.documents = run::DocumentMode::kMasked;
  spec_.data.tokens = 5000;
  spec_.data.id = Store(data::NumberBytes(std::vector<uint16_t>(5000, 7)));
  spec_.data.index_id = std::string(64, 'a');
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "aaaa' is not at the coordinator");
  spec_.data.index_id = Store(data::MegatronDocuments({4000, 999}).Bytes());
  ExpectRefused(absl::StatusCode::kInvalidArgument, "has 4999");
  spec_.data.index_id = Store("no index");
  ExpectRefused(absl::StatusCode::kInvalidArgument, "MMIDIDX");
  spec_.data.index_id = Store(data::MegatronDocuments({4000, 1000}).Bytes());
  EXPECT_TRUE(check_.Check(spec_).ok());
  spec_.model.vocab = 7;
  ExpectRefused(absl::StatusCode::kInvalidArgument, "at least 8");
}

TEST_F(RunCheckTest, TokensThatFitAreReadOnce) {
  int reads = 0;
  RunDataCheck check(datasets_, [&reads](const run::RunSpec& spec, const data::DatasetStore& sets) {
    ++reads;
    return CheckStoredTokens(spec, sets);
  });
  spec_.data.tokenizer = run::Tokenizer::kBytes;
  spec_.data.tokens = 5000;
  spec_.data.id = Store(std::string(5000, '\7'));
  EXPECT_TRUE(check.Check(spec_).ok());
  spec_.name = "other";
  spec_.model.layers = 2;
  spec_.data.train = "other/path";
  EXPECT_TRUE(check.Check(spec_).ok());
  EXPECT_EQ(reads, 1);
  // What they were not checked for.
  const auto refuses = [&](auto& field, auto value) {
    const auto good = field;
    field = value;
    EXPECT_FALSE(check.Check(spec_).ok());
    EXPECT_FALSE(check.Check(spec_).ok());
    field = good;
    EXPECT_TRUE(check.Check(spec_).ok());
  };
  refuses(spec_.model.vocab, 7);
  refuses(spec_.model.context, 6000);
  refuses(spec_.data.tokens, 4999);
  refuses(spec_.data.tokenizer, run::Tokenizer::kUint16);
  EXPECT_EQ(reads, 9);
  // What was read once is not taken for what is there now.
  ASSERT_TRUE(WriteFileAtomically(datasets_.DataPath(spec_.data.id), std::string(5000, 'x')).ok());
  EXPECT_EQ(check.Check(spec_).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace longhaul::daemon
