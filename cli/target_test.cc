#include "cli/target.h"

#include <cstdlib>

#include "base/file.h"
#include "base/testing/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::HasSubstr;

class TargetTest : public testing::Test {
 protected:
  TargetTest() {
    Clear();
    context_.dir = folder_;
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/cluster.json",
                                    R"({"schema":1,"coordinator":"127.0.0.1:7","processes":[]})")
                    .ok());
  }
  ~TargetTest() override { Clear(); }

  void ExpectToken(const std::string& file) {
    const auto target = FindTarget(context_);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->security.cluster_token_file, file);
    EXPECT_FALSE(target->security.tls.has_value());
  }
  void ExpectRefused(const std::string& text) {
    const auto target = FindTarget(context_);
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument) << target.status();
    EXPECT_THAT(std::string(target.status().message()), HasSubstr(text));
  }

  const TestFolder test_folder_{"target-test"};
  const std::string& folder_ = test_folder_.path();
  Context context_;

 private:
  void Clear() {
    ::unsetenv("LONGHAUL_COORDINATOR");
    ::unsetenv("LONGHAUL_TOKEN_FILE");
  }
};

TEST_F(TargetTest, TheLocalClustersTokenIsForItsOwnAddressOnly) {
  ExpectToken(folder_ + "/token");
  EXPECT_EQ(FindTarget(context_)->address, "127.0.0.1:7");
  context_.coordinator = "127.0.0.1:7";
  ExpectToken(folder_ + "/token");
  for (const char* other : {"127.0.0.1:8", "127.0.0.2:7", "localhost:7", "[::1]:7"}) {
    context_.coordinator = other;
    ExpectRefused("--token-file");
  }
  context_.coordinator = "hub.example.org:7";
  context_.insecure = true;
  ExpectRefused("for that cluster only");
}

TEST_F(TargetTest, OnlyTheLocalClustersAddressMeansTheLocalCluster) {
  EXPECT_TRUE(IsLocalTarget(context_));
  context_.coordinator = "127.0.0.1:7";
  EXPECT_TRUE(IsLocalTarget(context_));
  context_.coordinator = "localhost:8";
  EXPECT_FALSE(IsLocalTarget(context_));
  context_.coordinator = "";
  ::setenv("LONGHAUL_COORDINATOR", "hub.example.org:7", 1);
  EXPECT_TRUE(IsLocalTarget(context_));  // --dir is given
  context_.dir = "";
  EXPECT_FALSE(IsLocalTarget(context_));
}

TEST_F(TargetTest, NoTokenIsTakenFromAClusterThatCannotBeRead) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/cluster.json", "{").ok());
  ExpectRefused("is damaged");
  context_.coordinator = "127.0.0.1:7";
  ExpectRefused("--token-file");
}

TEST_F(TargetTest, TheEnvironmentNamesAddressAndToken) {
  context_.dir = "";
  ::setenv("LONGHAUL_COORDINATOR", "127.0.0.1:9", 1);
  ::setenv("LONGHAUL_TOKEN_FILE", "/secret", 1);
  ExpectToken("/secret");
  EXPECT_EQ(FindTarget(context_)->source, "LONGHAUL_COORDINATOR");
  context_.token_file = "/own";
  ExpectToken("/own");
  context_.token_file = "";
  context_.dir = folder_;
  ExpectToken(folder_ + "/token");
}

TEST_F(TargetTest, PlaintextLeavesTheMachineOnlyWhenToldTo) {
  context_.token_file = "/own";
  for (const char* other : {"hub.example.org:7", "10.0.0.1:7", "0.0.0.0:7", "[2001:db8::1]:7"}) {
    context_.coordinator = other;
    context_.insecure = false;
    ExpectRefused("is not a loopback address and TLS is off");
    ExpectRefused("--insecure");
    context_.insecure = true;
    ExpectToken("/own");
  }
  context_.insecure = false;
  for (const char* own : {"127.1.2.3:7", "localhost:7", "[::1]:7"}) {
    context_.coordinator = own;
    ExpectToken("/own");
  }
}

TEST_F(TargetTest, TlsNeedsNoTokenAndAllItsFiles) {
  context_.coordinator = "hub.example.org:7";
  context_.tls_ca = "ca";
  context_.tls_certificate = "certificate";
  ExpectRefused("all three");
  context_.tls_key = "key";
  const auto target = FindTarget(context_);
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->security.tls, (daemon::TlsFiles{"certificate", "key", "ca"}));
  EXPECT_EQ(target->security.cluster_token_file, "");
}

TEST_F(TargetTest, WhatIsNoAddressIsBadInput) {
  for (const char* bad : {"hub", "hub:", "unix:/socket", "dns:///hub:7", "hub:70000"}) {
    context_.coordinator = bad;
    ExpectRefused("--coordinator: expected HOST:PORT");
  }
}

}  // namespace
}  // namespace longhaul::cli
