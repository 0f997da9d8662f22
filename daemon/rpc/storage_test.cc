// Data sets and shards over real connections.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "daemon/rpc/endpoint.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/storage_client.h"
#include "daemon/rpc/storage_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longhaul::daemon {
namespace {

using testing::HasSubstr;

// Puts shards into a store; can play a full disk.
class FakeCheckpoints : public coordinator::Checkpoints {
 public:
  explicit FakeCheckpoints(checkpoint::ShardStore& store) : store_(store) {}
  absl::Status StoreShard(absl::string_view sha256, absl::string_view bytes) override {
    if (!failure.ok()) return failure;
    return store_.PutShard(sha256, bytes);
  }
  void Prune(const std::string&, int64_t) override {}
  void Drop(const std::string&, const std::vector<std::string>&) override {}
  absl::Status Commit(const checkpoint::Manifest&, const run::RunSpec&) override {
    return absl::OkStatus();
  }
  absl::Status failure;

 private:
  checkpoint::ShardStore& store_;
};

class StorageTest : public testing::Test {
 protected:
  StorageTest() {
    std::filesystem::remove_all(folder_);
    server_ = std::make_unique<StorageServer>(
        StorageServer::Stores{datasets_, uploads_, shards_, checkpoints_}, *credentials_,
        RealClock(), StorageLimits{.shard_bytes_max = 5 << 20});
    auto listening = ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {server_.get()}, 16);
    EXPECT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    const std::string address = ToString(listening_->address());
    client_ = std::make_unique<StorageClient>(address, "hub", *credentials_, RealClock());
    stub_ = v1::Storage::NewStub(OpenChannel(address, "hub", *credentials_));
  }
  ~StorageTest() override {
    listening_.reset();
    std::filesystem::remove_all(folder_);
  }

  absl::Time Deadline() const { return RealClock().Now() + absl::Seconds(20); }
  std::unique_ptr<grpc::ClientContext> Context() const {
    auto context = std::make_unique<grpc::ClientContext>();
    credentials_->Sign(*context);
    EndAfter(*context, absl::Seconds(20));
    return context;
  }
  v1::BeginUploadResponse Begin(const data::DatasetIndex& index) {
    v1::BeginUploadRequest request;
    request.set_index_json(index.ToJson());
    v1::BeginUploadResponse response;
    EXPECT_TRUE(stub_->BeginUpload(Context().get(), request, &response).ok());
    return response;
  }
  grpc::Status Upload(const std::string& id, uint64_t chunk, const std::string& data) {
    v1::UploadChunkRequest request;
    request.set_dataset(id);
    request.set_chunk(chunk);
    request.set_data(data);
    v1::UploadChunkResponse response;
    return stub_->UploadChunk(Context().get(), request, &response);
  }
  grpc::Status Finish(const std::string& id) {
    v1::FinishUploadRequest request;
    request.set_dataset(id);
    v1::FinishUploadResponse response;
    return stub_->FinishUpload(Context().get(), request, &response);
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/storage_test_", getpid());
  const std::unique_ptr<Credentials> credentials_ = Credentials::FromToken("0123456789abcdef");
  data::DatasetStore datasets_{folder_ + "/datasets"};
  UploadStaging uploads_{folder_ + "/uploads", datasets_, RealClock(), 2};
  checkpoint::ShardStore shards_{folder_ + "/checkpoints"};
  FakeCheckpoints checkpoints_{shards_};
  std::unique_ptr<StorageServer> server_;
  std::unique_ptr<ListeningServer> listening_;
  std::unique_ptr<StorageClient> client_;
  std::unique_ptr<v1::Storage::Stub> stub_;
};

// Two whole chunks and a short one.
struct SampleSet {
  SampleSet() {
    for (const size_t size : {data::kChunkBytes, data::kChunkBytes, uint64_t{1000}}) {
      chunks.push_back(std::string(size, static_cast<char>('a' + chunks.size())));
      index.bytes += size;
      index.chunk_sha256.push_back(Sha256Hex(chunks.back()));
    }
  }
  std::vector<std::string> chunks;
  data::DatasetIndex index;
};

TEST_F(StorageTest, AnUploadedSetIsFetchedChunkByChunk) {
  const SampleSet set;
  const std::string id = set.index.Id();
  EXPECT_THAT(Begin(set.index).missing_chunks(), testing::ElementsAre(0, 1, 2));
  EXPECT_TRUE(Upload(id, 2, set.chunks[2]).ok());
  EXPECT_TRUE(Upload(id, 0, set.chunks[0]).ok());
  EXPECT_EQ(Finish(id).error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(Begin(set.index).missing_chunks(), testing::ElementsAre(1));
  EXPECT_TRUE(Upload(id, 1, set.chunks[1]).ok());
  EXPECT_TRUE(Finish(id).ok());
  EXPECT_TRUE(Finish(id).ok());
  EXPECT_THAT(Begin(set.index).missing_chunks(), testing::IsEmpty());
  const auto index = client_->FetchIndex(id, Deadline());
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->Id(), id);
  for (uint64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(*client_->FetchChunk(id, c, Deadline()), set.chunks[c]);
  }
  EXPECT_EQ(client_->FetchChunk(id, 3, Deadline()).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/uploads/" + id));
}

TEST_F(StorageTest, HostileUploadsAreRefused) {
  const SampleSet set;
  const std::string id = set.index.Id();
  EXPECT_EQ(Upload(id, 0, set.chunks[0]).error_code(), grpc::NOT_FOUND);
  Begin(set.index);
  EXPECT_EQ(Upload(id, 0, set.chunks[1]).error_code(), grpc::DATA_LOSS);
  EXPECT_EQ(Upload(id, 2, set.chunks[0]).error_code(), grpc::DATA_LOSS);
  EXPECT_EQ(Upload(id, 3, "").error_code(), grpc::OUT_OF_RANGE);
  EXPECT_EQ(Upload("../../etc", 0, "").error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Finish(std::string(64, 'a')).error_code(), grpc::NOT_FOUND);
  for (const char* text : {"", "{}", "[]"}) {
    v1::BeginUploadRequest request;
    request.set_index_json(text);
    v1::BeginUploadResponse response;
    EXPECT_EQ(stub_->BeginUpload(Context().get(), request, &response).error_code(),
              grpc::INVALID_ARGUMENT);
  }
  data::DatasetIndex other = set.index;
  other.chunk_sha256[0] = Sha256Hex("other");
  Begin(other);
  other.chunk_sha256[0] = Sha256Hex("third");
  EXPECT_EQ(uploads_.Begin(other).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StorageTest, ShardsGoThereAndBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{3} << 20) + 17}) {
    const std::string bytes(size, 's');
    const std::string sha256 = Sha256Hex(bytes);
    ASSERT_TRUE(client_->StoreShard(sha256, bytes, Deadline()).ok());
    const auto back = client_->FetchShard(sha256, size, Deadline());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, bytes);
    if (size > 0) {
      EXPECT_EQ(client_->FetchShard(sha256, size - 1, Deadline()).status().code(),
                absl::StatusCode::kDataLoss);
    }
  }
  EXPECT_EQ(client_->FetchShard(Sha256Hex("none"), 10, Deadline()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StorageTest, BadShardsAreRefusedAndNotKept) {
  const std::string bytes = "shard";
  EXPECT_EQ(client_->StoreShard(Sha256Hex("other"), bytes, Deadline()).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(client_->StoreShard("../x", bytes, Deadline()).code(),
            absl::StatusCode::kInvalidArgument);
  const std::string large(6 << 20, 'l');
  EXPECT_EQ(client_->StoreShard(Sha256Hex(large), large, Deadline()).code(),
            absl::StatusCode::kResourceExhausted);
  checkpoints_.failure = absl::ResourceExhaustedError("write '/x': No space left on device");
  const absl::Status full = client_->StoreShard(Sha256Hex(bytes), bytes, Deadline());
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("No space left on device"));
  EXPECT_FALSE(shards_.ShardBytes(Sha256Hex(bytes)).ok());
  // What only a person can put right is not to be tried again.
  checkpoints_.failure = absl::PermissionDeniedError("cannot create /x: Permission denied");
  EXPECT_EQ(client_->StoreShard(Sha256Hex(bytes), bytes, Deadline()).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(StorageTest, ADamagedShardIsSaidToBeOne) {
  const std::string bytes(3 << 20, 's');
  const std::string sha256 = Sha256Hex(bytes);
  ASSERT_TRUE(client_->StoreShard(sha256, bytes, Deadline()).ok());
  const std::string path = folder_ + "/checkpoints/shards/" + sha256;
  for (std::string damaged : {bytes.substr(1) + "x", bytes.substr(1), std::string()}) {
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    const absl::Status fetched = client_->FetchShard(sha256, bytes.size(), Deadline()).status();
    EXPECT_EQ(fetched.code(), absl::StatusCode::kDataLoss) << fetched;
    EXPECT_THAT(std::string(fetched.message()), HasSubstr(path + " is damaged"));
  }
}

// A peer that stands still holds nothing for ever: neither the memory for its upload nor a thread.
TEST_F(StorageTest, TransfersThatStandStillAreEnded) {
  const std::string large(20 << 20, 'l');
  StorageServer hasty{{datasets_, uploads_, shards_, checkpoints_},
                      *credentials_,
                      RealClock(),
                      StorageLimits{.upload_bytes_max = 2000, .silence_max = absl::Seconds(2)}};
  auto listening = ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {&hasty}, 16);
  ASSERT_TRUE(listening.ok()) << listening.status();
  const std::string address = ToString((*listening)->address());
  StorageClient client(address, "hub", *credentials_, RealClock());
  ASSERT_TRUE(client.StoreShard(Sha256Hex(large), large, Deadline()).ok());
  const auto stub = v1::Storage::NewStub(OpenChannel(address, "hub", *credentials_));

  const auto storing = Context();
  v1::StoreShardResponse response;
  const auto writer = stub->StoreShard(storing.get(), &response);
  v1::ShardPiece piece;
  piece.set_sha256(Sha256Hex("other"));
  piece.set_bytes(3000);
  piece.set_data("half");
  ASSERT_TRUE(writer->Write(piece));
  EXPECT_EQ(writer->Finish().error_code(), grpc::CANCELLED);
  const std::string second(1500, 's');
  absl::Status stored = absl::UnavailableError("");  // until the server has ended the first
  for (const absl::Time end = Deadline(); absl::IsUnavailable(stored) && RealClock().Now() < end;) {
    stored = client.StoreShard(Sha256Hex(second), second, end);
  }
  EXPECT_TRUE(stored.ok()) << stored;

  // More than the connection holds; who does not read it has not taken it.
  const auto fetching = Context();
  v1::FetchShardRequest request;
  request.set_sha256(Sha256Hex(large));
  const auto reader = stub->FetchShard(fetching.get(), request);
  ASSERT_TRUE(reader->Read(&piece));
  uint64_t bytes = piece.data().size();
  const absl::Time begin = RealClock().Now();
  (*listening)->Shutdown(absl::Seconds(20));
  EXPECT_LT(RealClock().Now() - begin, absl::Seconds(15));
  while (reader->Read(&piece)) bytes += piece.data().size();
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_LT(bytes, large.size());
}

// However small the memory for uploads, one by itself goes through; a second one is to be tried
// again until the first is over.
TEST_F(StorageTest, UploadsShareTheirMemory) {
  StorageServer small{{datasets_, uploads_, shards_, checkpoints_},
                      *credentials_,
                      RealClock(),
                      StorageLimits{.shard_bytes_max = 5 << 20, .upload_bytes_max = 2000}};
  auto listening = ListeningServer::Listen({"127.0.0.1", 0}, *credentials_, {&small}, 16);
  ASSERT_TRUE(listening.ok()) << listening.status();
  const std::string address = ToString((*listening)->address());
  StorageClient client(address, "hub", *credentials_, RealClock());
  std::string large(3000, 'l'), second(1500, 's');
  const auto stub = v1::Storage::NewStub(OpenChannel(address, "hub", *credentials_));
  v1::StoreShardResponse response;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientWriter<v1::ShardPiece>> writer;
  absl::Status refused;
  // Which of the two the server sees first is not ours to say: until it is the large one. Others
  // each time, since what is stored already needs no memory.
  for (const absl::Time deadline = Deadline(); refused.ok() && RealClock().Now() < deadline;) {
    if (writer) {
      writer->WritesDone();
      writer->Finish();
      writer.reset();
    }
    for (std::string* const shard : {&large, &second}) ++shard->back();
    v1::ShardPiece piece;
    piece.set_sha256(Sha256Hex(large));
    piece.set_bytes(large.size());
    piece.set_data(large);
    context = Context();
    writer = stub->StoreShard(context.get(), &response);
    ASSERT_TRUE(writer->Write(piece));
    refused = client.StoreShard(Sha256Hex(second), second, deadline);
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("try again"));
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(*shards_.GetShard(Sha256Hex(large)), large);
  EXPECT_TRUE(client.StoreShard(Sha256Hex(second), second, Deadline()).ok());
}

TEST_F(StorageTest, AnAbandonedUploadMakesRoom) {
  FakeClock clock;
  UploadStaging uploads{folder_ + "/staging", datasets_, clock, 2};
  const SampleSet set;
  const auto begin = [&](const std::string& name) {
    data::DatasetIndex index = set.index;
    index.chunk_sha256[1] = Sha256Hex(name);
    return uploads.Begin(index).status();
  };
  ASSERT_TRUE(uploads.Begin(set.index).ok());
  ASSERT_TRUE(begin("second").ok());
  clock.Advance(absl::Minutes(9));
  ASSERT_TRUE(uploads.Put(set.index.Id(), 0, set.chunks[0]).ok());
  EXPECT_EQ(begin("third").code(), absl::StatusCode::kResourceExhausted);
  clock.Advance(absl::Minutes(2));
  // The second is idle for longer than the first, which it does not cost anything.
  EXPECT_TRUE(begin("third").ok());
  EXPECT_TRUE(uploads.Put(set.index.Id(), 2, set.chunks[2]).ok());
  EXPECT_EQ(begin("fourth").code(), absl::StatusCode::kResourceExhausted);
}

// Sends pieces whose stated size is not their sum.
TEST_F(StorageTest, StatedSizesMustHold) {
  for (const auto& [stated, sent, code] : {std::tuple{uint64_t{3}, 5, grpc::INVALID_ARGUMENT},
                                           std::tuple{uint64_t{9}, 5, grpc::DATA_LOSS},
                                           std::tuple{UINT64_MAX, 5, grpc::RESOURCE_EXHAUSTED}}) {
    v1::StoreShardResponse response;
    const auto context = Context();
    const auto writer = stub_->StoreShard(context.get(), &response);
    v1::ShardPiece piece;
    piece.set_sha256(Sha256Hex("12345"));
    piece.set_bytes(stated);
    piece.set_data(std::string("12345").substr(0, static_cast<size_t>(sent)));
    writer->Write(piece);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), code) << stated;
  }
}

TEST_F(StorageTest, CancelEndsEveryCall) {
  client_->Cancel();
  EXPECT_EQ(client_->FetchIndex(Sha256Hex("x"), Deadline()).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(StorageTest, AViewIsCancelledByItself) {
  const std::unique_ptr<worker::RemoteStore> cancelled = client_->MakeView();
  const std::unique_ptr<worker::RemoteStore> other = client_->MakeView();
  cancelled->Cancel();
  const auto code = [this](worker::RemoteStore& store) {
    return store.FetchIndex(Sha256Hex("x"), Deadline()).status().code();
  };
  EXPECT_EQ(code(*cancelled), absl::StatusCode::kCancelled);
  EXPECT_EQ(code(*other), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(*client_), absl::StatusCode::kNotFound);
}

TEST_F(StorageTest, WithoutACoordinatorItIsUnavailable) {
  listening_.reset();
  const absl::Status gone = client_->FetchIndex(Sha256Hex("x"), Deadline()).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("at coordinator 127.0.0.1:"));
}

}  // namespace
}  // namespace longhaul::daemon
