// The command line's end of a connection, with a coordinator played by the test.
#include "cli/client.h"

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "daemon/rpc/endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Has nothing of a data set; remembers how long who asked would wait.
class FakeStorage final : public v1::Storage::Service {
 public:
  grpc::Status BeginUpload(grpc::ServerContext* context, const v1::BeginUploadRequest*,
                           v1::BeginUploadResponse*) override {
    begin_wait = WaitOf(*context);
    return grpc::Status::OK;
  }
  grpc::Status FinishUpload(grpc::ServerContext* context, const v1::FinishUploadRequest*,
                            v1::FinishUploadResponse*) override {
    finish_wait = WaitOf(*context);
    return grpc::Status::OK;
  }
  static absl::Duration WaitOf(const grpc::ServerContext& context) {
    return absl::FromChrono(context.deadline()) - RealClock().Now();
  }
  absl::Duration begin_wait, finish_wait;
};

class FakeAdmin final : public v1::Admin::Service {
 public:
  // Four, two at a time.
  grpc::Status ListCheckpoints(grpc::ServerContext*, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override {
    for (uint64_t step = request->from(); step < request->from() + 2; ++step) {
      response->add_manifest_json(absl::StrCat("manifest ", step));
      response->add_notes(absl::StrCat("note ", step));
    }
    if (request->from() == 0) response->set_next(2);
    if (lists_for_ever) response->set_next(request->from());
    return grpc::Status::OK;
  }
  bool lists_for_ever = false;
  grpc::Status Version(grpc::ServerContext*, const v1::VersionRequest*,
                       v1::VersionResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status StopRun(grpc::ServerContext*, const v1::StopRunRequest*,
                       v1::StopRunResponse*) override {
    return answer;
  }
  grpc::Status StartRun(grpc::ServerContext* context, const v1::StartRunRequest*,
                        v1::StartRunResponse*) override {
    start_wait = FakeStorage::WaitOf(*context);
    return grpc::Status::OK;
  }
  grpc::Status answer;
  absl::Duration start_wait;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/token", "0123456789abcdef").ok());
    EXPECT_EQ(::chmod((folder_ + "/token").c_str(), 0600), 0);
    auto listening =
        daemon::ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {&admin_, &storage_}, 16);
    EXPECT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    Context context;
    context.coordinator = ToString(listening_->address());
    context.token_file = folder_ + "/token";
    auto client = Client::Connect(context);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  absl::Status Stop(grpc::StatusCode code, const std::string& text) {
    admin_.answer = grpc::Status(code, text);
    return client_->StopRun("first").status();
  }

  const TestFolder test_folder_{"client-test"};
  const std::string& folder_ = test_folder_.path();
  const std::unique_ptr<daemon::Credentials> credentials_ =
      daemon::Credentials::FromToken("0123456789abcdef");
  FakeAdmin admin_;
  FakeStorage storage_;
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

// Before it answers, the coordinator reads the data set that it has, or all of what was sent.
TEST_F(ClientTest, WaitsLongerForALargerDataSet) {
  data::DatasetIndex index;
  index.bytes = data::kDatasetBytesMax;
  ASSERT_TRUE(client_->Upload(index, "", [](uint64_t, uint64_t) {}).ok());
  ASSERT_TRUE(client_->StartRun("{}", "", index.bytes).ok());
  // At 20 MB/s.
  const absl::Duration reading = absl::Seconds(static_cast<double>(index.bytes) / 20e6);
  EXPECT_GT(storage_.begin_wait, reading);
  EXPECT_GT(storage_.finish_wait, reading);
  EXPECT_GT(admin_.start_wait, reading + daemon::kRequestMax);
  ASSERT_TRUE(client_->StartRun("{}", "", 1).ok());
  EXPECT_GT(admin_.start_wait, daemon::kRequestMax);
  EXPECT_LT(admin_.start_wait, absl::Minutes(10));
}

TEST_F(ClientTest, ListsCheckpointsThatComeInParts) {
  const auto listed = client_->ListCheckpoints("first");
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->manifest_json(),
              testing::ElementsAre("manifest 0", "manifest 1", "manifest 2", "manifest 3"));
  EXPECT_THAT(listed->notes(), testing::ElementsAre("note 0", "note 1", "note 2", "note 3"));
  admin_.lists_for_ever = true;
  EXPECT_EQ(client_->ListCheckpoints("first").status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace longhaul::cli
