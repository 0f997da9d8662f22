// What every codec of the table must do. A new codec is covered by its row there and, if it is
// lossy, by its error bound in LossyError below.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compression/codec.h"

namespace longhaul::compression {
namespace {

constexpr size_t kSizes[] = {0, 1, 2, 255, 256, 257, 1000};

uint32_t RandomWord(uint64_t index) { return RandomBits(3, RandomStream::kBatch, 0, 0, index)[0]; }

// Any bits at all: normal numbers, subnormal ones, infinities, NaNs with payloads.
std::vector<float> RandomBitValues(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::bit_cast<float>(RandomWord(i));
  return values;
}

std::vector<float> SmallValues(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int32_t>(RandomWord(i))) * 0x1p-31f;
  }
  return values;
}

std::vector<float> ConstantValues(size_t count) { return std::vector<float>(count, 0.1f); }

class CodecConformance : public ::testing::TestWithParam<const Codec*> {
 protected:
  const Codec& codec() const { return *GetParam(); }

  // The encoding in an allocation of exactly its size, so that a sanitizer sees every step outside.
  std::vector<uint8_t> Encode(const std::vector<float>& values) const {
    std::vector<uint8_t> out(codec().EncodedSizeMax(values.size()));
    const size_t size = codec().Encode(values, absl::MakeSpan(out));
    EXPECT_LE(size, out.size());
    return std::vector<uint8_t>(out.begin(), out.begin() + static_cast<ptrdiff_t>(size));
  }

  absl::Status Decode(const std::vector<uint8_t>& bytes, std::vector<float>& values) const {
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
    if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
    return codec().Decode({exact.get(), bytes.size()}, absl::MakeSpan(values));
  }
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_P(CodecConformance, RoundTripKeepsTheBitsOrTheErrorBound) {
  // The largest error for a finite value, given the largest magnitude of its block of 256.
  const std::map<std::string, std::function<double(double, double)>> lossy_error = {
      {"bf16", [](double value, double) { return std::abs(value) * 0x1p-8; }},
      {"int8", [](double, double largest) { return largest / 127.0 * 0.5 * (1 + 1e-6); }},
  };
  for (const size_t size : kSizes) {
    for (const auto& make : {SmallValues, ConstantValues}) {
      const std::vector<float> values = make(size);
      std::vector<float> decoded(size);
      ASSERT_TRUE(Decode(Encode(values), decoded).ok()) << size;
      if (codec().lossless()) {
        EXPECT_TRUE(SameBits(values, decoded)) << size;
        continue;
      }
      for (size_t i = 0; i < size; ++i) {
        double largest = 0;
        for (size_t j = i / 256 * 256; j < std::min(size, (i / 256 + 1) * 256); ++j) {
          largest = std::max(largest, std::abs(static_cast<double>(values[j])));
        }
        EXPECT_LE(std::abs(static_cast<double>(values[i]) - decoded[i]),
                  lossy_error.at(std::string(codec().name()))(values[i], largest))
            << i << " of " << size;
      }
    }
  }
}

TEST_P(CodecConformance, AnyBitsFitAndLosslessCodecsKeepThem) {
  for (const size_t size : kSizes) {
    const std::vector<float> values = RandomBitValues(size);
    std::vector<float> decoded(size);
    ASSERT_TRUE(Decode(Encode(values), decoded).ok()) << size;
    if (codec().lossless()) {
      EXPECT_TRUE(SameBits(values, decoded)) << size;
    }
  }
}

TEST_P(CodecConformance, ValuesThatAreNotFiniteNeverDecodeToFiniteOnes) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::signaling_NaN()}) {
    for (const size_t at : {size_t{0}, size_t{255}, size_t{256}, size_t{299}}) {
      std::vector<float> values = SmallValues(300);
      values[at] = bad;
      std::vector<float> decoded(values.size());
      ASSERT_TRUE(Decode(Encode(values), decoded).ok());
      EXPECT_FALSE(std::isfinite(decoded[at])) << at;
    }
  }
}

TEST_P(CodecConformance, EncodingIsAFunctionOfTheValues) {
  const std::vector<float> values = RandomBitValues(1000);
  const std::vector<uint8_t> first = Encode(values);
  Encode(SmallValues(257));
  EXPECT_EQ(Encode(values), first);
}

TEST_P(CodecConformance, EveryTruncationAndExtensionIsDataLoss) {
  for (const size_t size : kSizes) {
    for (const auto& make : {SmallValues, ConstantValues}) {
      std::vector<uint8_t> bytes = Encode(make(size));
      std::vector<float> decoded(size);
      for (size_t length = 0; length < bytes.size(); ++length) {
        const std::vector<uint8_t> cut(bytes.begin(),
                                       bytes.begin() + static_cast<ptrdiff_t>(length));
        EXPECT_EQ(Decode(cut, decoded).code(), absl::StatusCode::kDataLoss)
            << length << " of " << bytes.size();
      }
      bytes.push_back(0);
      EXPECT_EQ(Decode(bytes, decoded).code(), absl::StatusCode::kDataLoss) << size;
    }
  }
}

TEST_P(CodecConformance, AnotherNumberOfValuesIsDataLoss) {
  const std::vector<uint8_t> bytes = Encode(ConstantValues(300));
  for (const size_t size : {0, 1, 299, 301, 600}) {
    std::vector<float> decoded(size);
    EXPECT_EQ(Decode(bytes, decoded).code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_P(CodecConformance, EveryFlippedBitIsDataLossOrDecodesInBounds) {
  for (const auto& make : {SmallValues, ConstantValues}) {
    const std::vector<float> values = make(300);
    std::vector<uint8_t> bytes = Encode(values);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      std::vector<float> decoded(values.size());
      const absl::Status status = Decode(bytes, decoded);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bit;
      } else if (codec().name() == "zstd") {
        // Some bits of zstd's own header say the same thing in two ways.
        EXPECT_TRUE(SameBits(values, decoded)) << bit;
      }
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
  }
}

TEST_P(CodecConformance, RandomBytesAreDataLossOrDecodeInBounds) {
  for (uint64_t round = 0; round < 200; ++round) {
    const size_t size = RandomWord(round) % 300;
    std::vector<uint8_t> bytes(RandomWord(1000 + round) % (codec().EncodedSizeMax(size) + 2));
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(RandomWord(round << 20 | i));
    }
    std::vector<float> decoded(size);
    const absl::Status status = Decode(bytes, decoded);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecConformance,
                         ::testing::ValuesIn(AllCodecs().begin(), AllCodecs().end()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace longhaul::compression
