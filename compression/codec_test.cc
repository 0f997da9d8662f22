// What is particular to one codec or to the table. codec_conformance_test.cc has what all codecs
// must do, codec_golden_test.cc the bytes.
#include "compression/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "base/rng.h"

namespace longhaul::compression {
namespace {

using ::testing::HasSubstr;

const Codec& Find(absl::string_view name) { return **FindCodec(name); }

std::vector<float> RoundTrip(const Codec& codec, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(codec.EncodedSizeMax(values.size()));
  bytes.resize(codec.Encode(values, absl::MakeSpan(bytes)));
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(codec.Decode(bytes, absl::MakeSpan(decoded)).ok());
  return decoded;
}

std::vector<float> NormalValues(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(
        RandomNormalPair(RandomBits(7, RandomStream::kInitialWeights, 0, 0, i))[0]);
  }
  return values;
}

TEST(CodecTable, NamesAndWireIdsAreUniqueAndFound) {
  std::set<std::string> names;
  std::set<uint16_t> ids;
  for (const Codec* codec : AllCodecs()) {
    EXPECT_TRUE(names.emplace(codec->name()).second) << codec->name();
    EXPECT_TRUE(ids.insert(codec->wire_id()).second) << codec->name();
    EXPECT_EQ(*FindCodec(codec->name()), codec);
    EXPECT_EQ(*FindCodec(codec->wire_id()), codec);
  }
}

TEST(CodecTable, WireIdsNeverChange) {
  EXPECT_EQ(Find("none").wire_id(), 0);
  EXPECT_EQ(Find("bf16").wire_id(), 1);
  EXPECT_EQ(Find("int8").wire_id(), 2);
  EXPECT_EQ(Find("zstd").wire_id(), 3);
}

TEST(CodecTable, UnknownCodecListsTheKnownOnes) {
  const absl::Status by_name = FindCodec("Int8").status();
  EXPECT_EQ(by_name.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(by_name.message()), HasSubstr("none, bf16, int8, zstd"));
  const absl::Status by_id = FindCodec(uint16_t{999}).status();
  EXPECT_EQ(by_id.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(by_id.message()), HasSubstr("999"));
}

TEST(Int8, OneInfinityMakesItsWholeBlockNanAndNoOther) {
  std::vector<float> values = NormalValues(768);
  values[300] = -std::numeric_limits<float>::infinity();
  const std::vector<float> decoded = RoundTrip(Find("int8"), values);
  for (size_t i = 0; i < decoded.size(); ++i) {
    EXPECT_EQ(std::isnan(decoded[i]), i >= 256 && i < 512) << i;
  }
}

TEST(Int8, TheLargestFiniteValueStaysFinite) {
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> decoded = RoundTrip(Find("int8"), {largest, -largest, 0});
  EXPECT_TRUE(std::isfinite(decoded[0]));
  EXPECT_NEAR(decoded[0] / largest, 1.0, 1e-6);
  EXPECT_EQ(decoded[1], -decoded[0]);
  EXPECT_EQ(decoded[2], 0.0f);
}

TEST(Bf16, NotFiniteValuesStayNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> decoded =
      RoundTrip(Find("bf16"), {infinity, -infinity, std::numeric_limits<float>::signaling_NaN(),
                               std::numeric_limits<float>::max()});
  EXPECT_EQ(decoded[0], infinity);
  EXPECT_EQ(decoded[1], -infinity);
  EXPECT_TRUE(std::isnan(decoded[2]));
  EXPECT_EQ(decoded[3], infinity);
}

TEST(Codecs, ExpectedSizeIsWhatNormalValuesTake) {
  const std::vector<float> values = NormalValues(65536);
  for (const Codec* codec : AllCodecs()) {
    std::vector<uint8_t> bytes(codec->EncodedSizeMax(values.size()));
    const double size = static_cast<double>(codec->Encode(values, absl::MakeSpan(bytes)));
    EXPECT_NEAR(size / static_cast<double>(values.size()), codec->ExpectedBytesPerElement(), 0.05)
        << codec->name();
  }
}

}  // namespace
}  // namespace longhaul::compression
