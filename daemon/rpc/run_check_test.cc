#include "daemon/rpc/run_check.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/testing/megatron.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/run_spec.h"

namespace longhaul::daemon {
namespace {

using ::testing::HasSubstr;

class RunCheckTest : public testing::Test {
 protected:
  RunCheckTest() { EXPECT_TRUE(MakeDirectories(folder_).ok()); }
  ~RunCheckTest() override { std::filesystem::remove_all(folder_); }

  // A complete data set of these bytes.
  std::string Store(const std::string& bytes) {
    const std::string path = folder_ + "/file";
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    const auto index = data::IndexFile(path);
    EXPECT_TRUE(datasets_.Fill(*index, [&bytes](uint64_t) { return bytes; }).ok());
    return index->Id();
  }
  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const absl::Status status = CheckRunData(spec_, datasets_);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const std::string folder_ = testing::TempDir() + "longhaul-run-check-test";
  data::DatasetStore datasets_{folder_ + "/datasets"};
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
  EXPECT_TRUE(CheckRunData(spec_, datasets_).ok());
  spec_.model.vocab = 7;
  ExpectRefused(absl::StatusCode::kInvalidArgument, "at least 8");
}

}  // namespace
}  // namespace longhaul::daemon
