#include "base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_pieces.h"
#include "base/testing/test_folder.h"
#include "gtest/gtest.h"

namespace longhaul {
namespace {

class FileTest : public testing::Test {
 protected:
  const TestFolder test_folder_{"file-test"};
  const std::string& folder_ = test_folder_.path();
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "hello again").ok());
  EXPECT_EQ(*ReadFile(path, 100), "hello again");
  EXPECT_EQ(*ReadFileRange(path, 6, 5), "again");
  EXPECT_EQ(*FileSize(path), 11u);
}

TEST_F(FileTest, FilesAreTheOwnersUnlessTheyAreForEveryone) {
  const auto mode = [&](FileAccess access) {
    const std::string path = folder_ + "/a";
    const auto pieces = [](AppendPiece append) { return append("x"); };
    EXPECT_TRUE(WritePiecesAtomically(path, pieces, access).ok());
    struct stat info;
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  const mode_t mask = ::umask(027);
  EXPECT_EQ(mode(FileAccess::kOwner), 0600u);
  EXPECT_EQ(mode(FileAccess::kEveryone), 0640u);
  ::umask(mask);
}

TEST_F(FileTest, ReadsPieceByPiece) {
  const std::string path = folder_ + "/a";
  std::vector<std::string> pieces;
  const auto keep = [&](absl::string_view piece) {
    pieces.emplace_back(piece);
    return piece == "lo" ? absl::AbortedError("enough") : absl::OkStatus();
  };
  EXPECT_EQ(ReadFilePieces(path, 3, keep).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFilePieces(folder_, 3, keep).code(), absl::StatusCode::kInvalidArgument);
  for (const char* text : {"", "hel", "helper", "helpers"}) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_TRUE(ReadFilePieces(path, 3, keep).ok());
  }
  EXPECT_EQ(pieces, std::vector<std::string>({"hel", "hel", "per", "hel", "per", "s"}));
  pieces.clear();
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_EQ(ReadFilePieces(path, 3, keep), absl::AbortedError("enough"));
  // Shorter than when it was opened.
  ASSERT_TRUE(WriteFileAtomically(path, "helper").ok());
  EXPECT_EQ(ReadFilePieces(path, 3,
                           [&path](absl::string_view) {
                             std::filesystem::resize_file(path, 3);
                             return absl::OkStatus();
                           })
                .code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(FileTest, RenamesOverWhatIsThere) {
  const std::string old_path = folder_ + "/a", path = folder_ + "/b";
  ASSERT_TRUE(WriteFileAtomically(old_path, "new").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  ASSERT_TRUE(RenameFile(old_path, path).ok());
  EXPECT_EQ(*ReadFile(path, 100), "new");
  const absl::Status gone = RenameFile(old_path, path);
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(gone.message().find(old_path), absl::string_view::npos) << gone;
  EXPECT_EQ(*ReadFile(path, 100), "new");
}

TEST_F(FileTest, RefusalsNameThePath) {
  const std::string path = folder_ + "/a";
  EXPECT_EQ(ReadFile(path, 10).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_EQ(ReadFile(path, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFileRange(path, 3, 3).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadFileRange(path, ~uint64_t{0}, 2).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadFile(folder_, 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(ReadFile(folder_ + "/b", 10).status().message().find(folder_ + "/b"),
            absl::string_view::npos);
}

TEST_F(FileTest, OnlyWhatPassesByItselfIsUnavailable) {
  const auto code = [](int error) { return ErrnoStatus(error, "open", "x").code(); };
  for (const int error : {EAGAIN, EINTR, ETIMEDOUT, ECONNREFUSED}) {
    EXPECT_EQ(code(error), absl::StatusCode::kUnavailable) << error;
  }
  for (const int error : {ENOTDIR, ENAMETOOLONG, EISDIR, ELOOP, EINVAL, ENXIO}) {
    EXPECT_EQ(code(error), absl::StatusCode::kInvalidArgument) << error;
  }
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    EXPECT_EQ(code(error), absl::StatusCode::kResourceExhausted) << error;
  }
  for (const int error : {EIO, EROFS, ENOMEM, EMFILE}) {
    EXPECT_EQ(code(error), absl::StatusCode::kInternal) << error;
  }
  EXPECT_EQ(code(ENOENT), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(EACCES), absl::StatusCode::kPermissionDenied);
}

TEST_F(FileTest, AFileIsNoFolder) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_EQ(ReadFile(path + "/b", 10).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // Nobody writes into the pipe; /dev/zero never ends.
  for (const std::string& path : {pipe, std::string("/dev/zero"), folder_}) {
    const std::string message = path + " is not a regular file";
    EXPECT_EQ(ReadFile(path, 100).status(), absl::InvalidArgumentError(message));
    EXPECT_EQ(ReadFileRange(path, 0, 1).status(), absl::InvalidArgumentError(message));
    EXPECT_EQ(FileSize(path).status(), absl::InvalidArgumentError(message));
  }
}

TEST_F(FileTest, FailedWriteKeepsTheOldFileAndLeavesNothingElse) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  // A file-size limit makes write() fail as a full disk would.
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{16, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(path, std::string(4096, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(*ReadFile(path, 100), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, PiecesMakeAFileAndAnErrorAmongThemNone) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WritePiecesAtomically(path, [](AppendPiece append) {
                absl::Status status = append("he");
                if (status.ok()) status = append("");
                return status.ok() ? append("llo") : status;
              }).ok());
  EXPECT_EQ(*ReadFile(path, 10), "hello");
  EXPECT_EQ(WritePiecesAtomically(path,
                                  [](AppendPiece append) {
                                    EXPECT_TRUE(append("bye").ok());
                                    return absl::DataLossError("gone");
                                  }),
            absl::DataLossError("gone"));
  EXPECT_EQ(*ReadFile(path, 10), "hello");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace longhaul
