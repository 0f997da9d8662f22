#include "daemon/device/nvml.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// With the library of fake_nvml.cc, whose answers Say sets.
class NvmlTest : public testing::Test {
 protected:
  NvmlTest() { setenv("FAKE_NVML", path_.c_str(), 1); }
  ~NvmlTest() override {
    unsetenv("FAKE_NVML");
    std::filesystem::remove(path_);
  }
  void Say(const std::string& answers) { ASSERT_TRUE(WriteFileAtomically(path_, answers).ok()); }
  static auto Open() { return OpenNvml("GPU-1", FAKE_NVML); }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/nvml_test_", getpid());
};

TEST_F(NvmlTest, ReadsWhatTheCardTells) {
  Say("celsius 64\nuncorrected 2\n");
  const auto card = Open();
  ASSERT_TRUE(card.ok()) << card.status();
  EXPECT_EQ((*card)->driver_version(), "580.65.06");
  auto now = (*card)->Read();
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->temperature_celsius, 64);
  EXPECT_DOUBLE_EQ(*now->power_watts, 412.5);
  EXPECT_EQ(now->core_megahertz, 1980);
  EXPECT_EQ(now->memory_megahertz, 2619);
  EXPECT_DOUBLE_EQ(*now->utilization, 0.75);
  EXPECT_EQ(now->uncorrected_errors, 2);
  EXPECT_FALSE(now->memory_used_bytes.has_value()) << "not supported is absent";
  Say("temperature 999\nerrors 3\n");
  now = (*card)->Read();
  ASSERT_TRUE(now.ok()) << "a question that is not answered is no lost card";
  EXPECT_FALSE(now->temperature_celsius.has_value());
  EXPECT_FALSE(now->uncorrected_errors.has_value());
}

TEST_F(NvmlTest, ALostCardIsAnError) {
  const auto because = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return std::string(status.message());
  };
  Say("celsius 64\n");
  const auto card = Open();
  ASSERT_TRUE(card.ok()) << card.status();
  Say("temperature 15\n");
  EXPECT_THAT(because((*card)->Read().status()), HasSubstr("card GPU-1 is lost"));
  Say("errors 16\n");
  EXPECT_THAT(because((*card)->Read().status()), HasSubstr("must be reset"));
  Say("rows_pending 1\n");
  EXPECT_THAT(because((*card)->Read().status()), HasSubstr("only after a reset"));
  EXPECT_THAT(because(Open().status()), HasSubstr("only after a reset"));
  Say("rows_failed 1\n");
  EXPECT_THAT(because(Open().status()), HasSubstr("no spare rows left; replace it"));
  Say("handle 15\n");
  EXPECT_THAT(because(Open().status()), HasSubstr("is lost"));
}

TEST_F(NvmlTest, IsNotNeeded) {
  const auto because = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(because(OpenNvml("GPU-1", "libnvidia-ml-that-is-not.so.1").status()),
              HasSubstr("libnvidia-ml-that-is-not.so.1"));
  EXPECT_THAT(because(Open().status()), HasSubstr("does not know card GPU-1"));
  Say("init 9\n");
  EXPECT_THAT(because(Open().status()), HasSubstr("does not start (its error 9)"));
}

}  // namespace
}  // namespace longhaul::daemon
