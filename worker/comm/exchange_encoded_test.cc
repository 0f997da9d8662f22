// Tensors that are encoded and decoded outside of the exchange, as on a device: the other end
// cannot tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compression/codec.h"
#include "worker/comm/exchange.h"
#include "worker/comm/testing/two_stages.h"

namespace longhaul::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

LinkOptions LinkWith(const std::string& codec) {
  LinkOptions link = TestOptions(0).links[0];
  link.codec = codec;
  return link;
}

Bytes Encode(const std::string& codec_name, const std::vector<float>& values) {
  const compression::Codec& codec = **compression::FindCodec(absl::string_view(codec_name));
  Bytes bytes(codec.EncodedSizeMax(values.size()));
  bytes.resize(codec.Encode(values, absl::MakeSpan(bytes)));
  return bytes;
}

absl::StatusOr<Bytes> ReceiveEncoded(TwoStages& stages, const FrameKey& key, uint64_t elements) {
  Bytes received;
  const absl::Status status = stages.stage(1).ReceiveEncoded(
      0, key, elements,
      [&](absl::Span<const uint8_t> bytes) {
        received.assign(bytes.begin(), bytes.end());
        return absl::OkStatus();
      },
      stages.Soon());
  if (!status.ok()) return status;
  return received;
}

class ExchangeEncoded : public ::testing::TestWithParam<std::string> {
 protected:
  TwoStages stages_{LinkWith(GetParam())};
  const std::vector<float> values_ = TestValues(5);
  const Bytes bytes_ = Encode(GetParam(), values_);
  const EncodedTensor tensor_{GetParam(), values_.size(), bytes_};
};

TEST_P(ExchangeEncoded, EitherEndMayEncode) {
  stages_.Start();
  const FrameKey first = TestKey(FrameKind::kActivation, 0, 1);
  const FrameKey second = TestKey(FrameKind::kActivation, 1, 1);
  ASSERT_TRUE(stages_.stage(0).SendEncoded(1, first, tensor_, stages_.Soon()).ok());

  ASSERT_TRUE(stages_.stage(0).Send(1, second, values_, stages_.Soon()).ok());

  const absl::StatusOr<Bytes> as_sent = ReceiveEncoded(stages_, second, values_.size());
  ASSERT_TRUE(as_sent.ok()) << as_sent.status();
  EXPECT_EQ(*as_sent, bytes_);
  std::vector<float> decoded(values_.size()), expected(values_.size());
  ASSERT_TRUE(stages_.stage(1).Receive(0, first, absl::MakeSpan(decoded), stages_.Soon()).ok());
  const compression::Codec& codec = **compression::FindCodec(absl::string_view(GetParam()));
  ASSERT_TRUE(codec.Decode(bytes_, absl::MakeSpan(expected)).ok());
  EXPECT_EQ(decoded, expected);
  // Both are consumed: nothing waits for the peer any more.
  EXPECT_TRUE(stages_.stage(0).Flush(stages_.Soon()).ok());
}

INSTANTIATE_TEST_SUITE_P(All, ExchangeEncoded, ::testing::Values("none", "bf16", "int8", "zstd"));

TEST(Exchange, AnEncodedTensorMustBeOfThePlan) {
  TwoStages stages(LinkWith("int8"));
  stages.Start();
  const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
  const std::vector<float> values = TestValues(0, 100);
  const auto send = [&](const std::string& codec, uint64_t elements, size_t bytes) {
    return stages.stage(0).SendEncoded(1, key, {codec, elements, Bytes(bytes)}, stages.Soon());
  };
  const absl::Status other_codec = send("bf16", 100, 104);
  EXPECT_TRUE(absl::IsInvalidArgument(other_codec));
  EXPECT_THAT(std::string(other_codec.message()), AllOf(HasSubstr("bf16"), HasSubstr("int8")));
  EXPECT_TRUE(absl::IsInvalidArgument(send("int8", 100, 105)));
  EXPECT_TRUE(absl::IsInvalidArgument(send("int8", 101, 105)));
  EXPECT_TRUE(send("int8", 100, 104).ok());
}

// A frame is not consumed before the receiver has taken it, and never handed out where its size is
// not what so many values may have.
TEST(Exchange, AnEncodedTensorIsConsumedOnceItIsTaken) {
  TwoStages stages(LinkWith("int8"));
  stages.Start();
  const FrameKey key = TestKey(FrameKind::kActivation, 0, 1);
  const std::vector<float> values = TestValues(0, 100);
  ASSERT_TRUE(stages.stage(0).Send(1, key, values, stages.Soon()).ok());
  const absl::Status refused = ReceiveEncoded(stages, key, 99).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has 100 elements, expected 99"));
  const absl::Status not_taken = stages.stage(1).ReceiveEncoded(
      0, key, 100, [](absl::Span<const uint8_t>) { return absl::AbortedError("no room"); },
      stages.Soon());
  EXPECT_TRUE(absl::IsAborted(not_taken));
  EXPECT_THAT(std::string(not_taken.message()),
              AllOf(HasSubstr("no room"), HasSubstr("micro-batch 0"), HasSubstr("stage 0")));
  const absl::StatusOr<Bytes> taken = ReceiveEncoded(stages, key, 100);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*taken, Encode("int8", values));
}

}  // namespace
}  // namespace longhaul::worker
