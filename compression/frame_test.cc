#include "compression/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <string>

#include "compression/codec.h"
#include "compression/little_endian.h"

namespace longhaul::compression {
namespace {

using ::testing::HasSubstr;

FrameHeader GoodHeader() {
  FrameHeader header;
  header.key = {{1, 4}, 0, 17, 3, 2, FrameKind::kActivation, 0};
  header.run_hash = RunHash("first");
  header.elements = 3;
  header.payload_bytes = 12;
  return header;
}

std::string GoodFrame() {
  const std::string payload = "abcdefghijkl";
  std::string frame(kFrameHeaderBytes, '\0');
  WriteFrameHeader(GoodHeader(), payload, frame.data());
  return frame + payload;
}

// Puts `value` at `offset` and makes the header's checksum right again, as a hostile peer would.
template <typename T>
std::string Forged(size_t offset, T value) {
  std::string frame = GoodFrame();
  StoreLittleEndian(value, frame.data() + offset);
  StoreLittleEndian(uint64_t{XXH3_64bits(frame.data(), 88)}, frame.data() + 88);
  return frame;
}

template <typename T>
absl::Status StatusOfForged(size_t offset, T value) {
  return ParseFrameHeader(Forged(offset, value)).status();
}

TEST(Frame, WhatIsWrittenIsParsed) {
  const absl::StatusOr<FrameHeader> parsed = ParseFrame(GoodFrame());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->key, GoodHeader().key);
  EXPECT_EQ(parsed->elements, 3u);
}

TEST(Frame, EveryFlippedBitIsCaught) {
  std::string frame = GoodFrame();
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(ParseFrame(frame).ok()) << bit;
    EXPECT_EQ(ParseFrameHeader(frame).ok(), bit / 8 >= kFrameHeaderBytes) << bit;
    frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(Frame, EveryTruncationAndExtensionIsDataLoss) {
  const std::string frame = GoodFrame();
  for (size_t length = 0; length < frame.size(); ++length) {
    EXPECT_EQ(ParseFrame(frame.substr(0, length)).status().code(), absl::StatusCode::kDataLoss)
        << length;
  }
  EXPECT_EQ(ParseFrame(frame + "x").status().code(), absl::StatusCode::kDataLoss);
}

TEST(Frame, AnotherVersionIsNamedWithOurs) {
  const absl::Status status = StatusOfForged(4, uint16_t{2});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2, this build reads version 1"));
}

TEST(Frame, UnknownCodecElementTypeAndReservedBytesAreInvalid) {
  EXPECT_EQ(StatusOfForged(48, uint16_t{77}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOfForged(50, uint8_t{0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOfForged(50, uint8_t{3}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOfForged(55, uint8_t{1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOfForged(79, uint8_t{1}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Frame, OnlyFloat32IsEncoded) {
  std::string frame = Forged(48, uint16_t{2});
  StoreLittleEndian(static_cast<uint8_t>(ElementType::kFloat64), frame.data() + 50);
  StoreLittleEndian(uint64_t{XXH3_64bits(frame.data(), 88)}, frame.data() + 88);
  const absl::Status status = ParseFrameHeader(frame).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("encodes only fp32"));
}

TEST(Frame, HostileSizesAreDataLoss) {
  for (const uint64_t size : {uint64_t{13}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_EQ(StatusOfForged(64, size).code(), absl::StatusCode::kDataLoss) << size;
  }
  // 2^62 + 3 elements of four bytes are 12 bytes in 64 bits.
  for (const uint64_t elements :
       {uint64_t{0}, uint64_t{2}, (uint64_t{1} << 62) + 3, kElementsMax + 1, ~uint64_t{0}}) {
    EXPECT_EQ(StatusOfForged(56, elements).code(), absl::StatusCode::kDataLoss) << elements;
  }
}

TEST(Frame, DoublesHaveExactlyTheirSize) {
  EXPECT_EQ(StatusOfForged(50, static_cast<uint8_t>(ElementType::kFloat64)).code(),
            absl::StatusCode::kDataLoss);
}

TEST(Frame, AKindThisBuildDoesNotKnowIsTheReceiversAffair) {
  const absl::StatusOr<FrameHeader> parsed = ParseFrame(Forged(6, uint16_t{999}));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(static_cast<uint16_t>(parsed->key.kind), 999);
}

TEST(Frame, RunHashIsTheBeginningOfTheSha256) {
  // SHA-256("abc") begins ba7816bf 8f01cfea (FIPS 180-4's example).
  EXPECT_EQ(RunHash("abc"), 0xeacf018fbf1678bau);
}

}  // namespace
}  // namespace longhaul::compression
