// The command line's end of a connection, with a coordinator played by the test.
#include "cli/client.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "daemon/rpc/endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeAdmin final : public v1::Admin::Service {
 public:
  grpc::Status Version(grpc::ServerContext*, const v1::VersionRequest*,
                       v1::VersionResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status StopRun(grpc::ServerContext*, const v1::StopRunRequest*,
                       v1::StopRunResponse*) override {
    return answer;
  }
  grpc::Status answer;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/token", "0123456789abcdef").ok());
    EXPECT_EQ(::chmod((folder_ + "/token").c_str(), 0600), 0);
    auto listening =
        daemon::ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {&admin_}, 16);
    EXPECT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    Context context;
    context.coordinator = ToString(listening_->address());
    context.token_file = folder_ + "/token";
    auto client = Client::Connect(context);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~ClientTest() override { std::filesystem::remove_all(folder_); }

  absl::Status Stop(grpc::StatusCode code, const std::string& text) {
    admin_.answer = grpc::Status(code, text);
    return client_->StopRun("first").status();
  }

  const std::string folder_ = testing::TempDir() + "longhaul-client-test";
  const std::unique_ptr<daemon::Credentials> credentials_ =
      daemon::Credentials::FromToken("0123456789abcdef");
  FakeAdmin admin_;
  std::unique_ptr<daemon::ListeningServer> listening_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, WhatMayHaveBeenDoneIsNotSaidToBeUndone) {
  const absl::Status late = Stop(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded");
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()),
              AllOf(HasSubstr("did not confirm it"), HasSubstr("may still do what was asked")));
  const absl::Status said =
      Stop(grpc::StatusCode::DEADLINE_EXCEEDED, "no answer; it may still do it: look");
  EXPECT_THAT(std::string(said.message()),
              AllOf(HasSubstr("may still do it: look"), Not(HasSubstr("what was asked"))));
  const absl::Status lost = Stop(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  EXPECT_EQ(lost.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("did not confirm it: Socket closed"));
}

TEST_F(ClientTest, ARefusalKeepsItsWordsAndCode) {
  const absl::Status refused = Stop(grpc::StatusCode::FAILED_PRECONDITION, "it is done");
  EXPECT_EQ(refused, absl::FailedPreconditionError("it is done"));
}

}  // namespace
}  // namespace longhaul::cli
