// On every backend, the codecs' bytes and values are bit for bit those of compression/, which is
// the oracle.
#include "compute/codec/device_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compute/testing/op_testing.h"
#include "gtest/gtest.h"

namespace longhaul::compute {
namespace {

using compression::Codec;

constexpr int64_t kLengths[] = {1, 3, 4, 5, 7, 8, 9, 255, 256, 257, 260, 511, 512, 513, 2900};
constexpr size_t kSentinels = 32;  // bytes on both sides
constexpr uint8_t kSentinel = 0xa5;

void Must(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

// Device memory between sentinels; `offset` bytes away from where a Backend would begin it.
class GuardedBytes {
 public:
  GuardedBytes(Backend& backend, const void* bytes, size_t count, size_t offset = 0)
      : backend_(backend), count_(count), begin_(kSentinels + offset) {
    std::vector<uint8_t> all(begin_ + count + kSentinels, kSentinel);
    if (count > 0) std::memcpy(all.data() + begin_, bytes, count);
    buffer_ = backend.Allocate(all.size()).value();
    Must(backend.CopyToDevice(buffer_->data(), all.data(), all.size()));
    Must(backend.Synchronize());
  }

  void* data() { return static_cast<uint8_t*>(buffer_->data()) + begin_; }
  std::vector<uint8_t> Read() {
    std::vector<uint8_t> all(buffer_->bytes());
    Must(backend_.CopyToHost(all.data(), buffer_->data(), all.size()));
    Must(backend_.Synchronize());
    const auto is_sentinel = [](uint8_t byte) { return byte == kSentinel; };
    const auto first = all.begin() + static_cast<ptrdiff_t>(begin_);
    const auto last = first + static_cast<ptrdiff_t>(count_);
    EXPECT_TRUE(std::all_of(all.begin(), first, is_sentinel)) << "overwritten before";
    EXPECT_TRUE(std::all_of(last, all.end(), is_sentinel)) << "overwritten after";
    return {first, last};
  }

 private:
  Backend& backend_;
  const size_t count_, begin_;
  std::unique_ptr<Buffer> buffer_;
};

uint32_t RandomWord(uint64_t seed, uint64_t index) {
  return RandomBits(seed, RandomStream::kBatch, 0, 0, index)[0];
}

// Any bits: normal numbers, subnormal ones, infinities, NaNs with payloads. `part` of 4 blocks of
// the int8 codec has numbers only, of a magnitude that differs from block to block.
std::vector<float> TestFloats(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = RandomWord(seed, i);
    const int magnitude = static_cast<int>(RandomWord(seed + 1, i / 256) % 276) - 149;
    values[i] = i / 256 % 4 == 1
                    ? std::bit_cast<float>(word)
                    : std::ldexp(static_cast<float>(static_cast<int32_t>(word)), magnitude - 30);
    if (!std::isfinite(values[i]) && i / 256 % 4 != 1) values[i] = -0.0f;
  }
  return values;
}

// One kind of difficulty each, in blocks of any length.
std::vector<std::vector<float>> Extremes() {
  using Limits = std::numeric_limits<float>;
  const float nan_with_payload = std::bit_cast<float>(0x7f812345u);
  const float negative_nan = std::bit_cast<float>(0xffc00001u);
  return {
      {0.0f, -0.0f},
      {Limits::max(), -Limits::max(), 1.0f, -0.0f},
      {Limits::denorm_min(), -Limits::denorm_min(), 0.0f},
      {Limits::min(), Limits::min() / 2, -Limits::min()},
      {127 * Limits::min(), -Limits::min(), 1e-44f},        // the smallest scale
      {std::nextafter(127 * Limits::min(), 0.0f), 1e-38f},  // just flushed
      {Limits::infinity(), 1.0f, -1.0f},
      {-Limits::infinity(), 0.0f},
      {nan_with_payload, 1.0f, negative_nan, Limits::signaling_NaN()},
      {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f},                // ties of int8
      {std::bit_cast<float>(0x3f808000u), std::bit_cast<float>(0x3f818000u),  // ties of bf16
       std::bit_cast<float>(0xbf808000u), std::bit_cast<float>(0x3f808001u)},
      {std::bit_cast<float>(0x7f7fffffu), std::bit_cast<float>(0x7f7f8000u)},  // rounds to infinity
  };
}

std::vector<std::vector<float>> AllInputs() {
  std::vector<std::vector<float>> inputs = Extremes();
  for (const int64_t length : kLengths) {
    inputs.push_back(TestFloats(length, static_cast<uint64_t>(length)));
  }
  // Extremes inside whole blocks, at changing places.
  for (const std::vector<float>& extreme : Extremes()) {
    std::vector<float> values(300);
    for (size_t i = 0; i < values.size(); ++i) values[i] = extreme[i * i % extreme.size()];
    inputs.push_back(values);
  }
  return inputs;
}

template <typename T>
std::vector<T> Rounded(const std::vector<float>& values) {
  std::vector<T> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // The upper half as it is, so that NaNs that are not quiet are among them.
    if constexpr (std::is_same_v<T, BFloat16>) {
      rounded[i].bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
    } else {
      rounded[i] = values[i];
    }
  }
  return rounded;
}

std::vector<uint8_t> Encoded(const Codec& codec, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(codec.EncodedSizeMax(values.size()));
  EXPECT_EQ(codec.Encode(values, absl::MakeSpan(bytes)), bytes.size());
  return bytes;
}

template <typename T>
void ExpectSameBytes(Backend& backend, const DeviceCodec& codec, const std::vector<float>& floats,
                     size_t offset) {
  const std::vector<T> values = Rounded<T>(floats);
  GuardedBytes device(backend, values.data(), values.size() * sizeof(T), offset * sizeof(T));
  const absl::Span<T> span(static_cast<T*>(device.data()), values.size());
  const std::vector<uint8_t> expected = Encoded(codec.codec(), {values.begin(), values.end()});
  ASSERT_EQ(codec.EncodedSize(static_cast<int64_t>(values.size())), expected.size());
  GuardedBytes bytes(backend, std::vector<uint8_t>(expected.size(), 0x77).data(), expected.size());
  ASSERT_TRUE(codec.Encode(DeviceSpan(span), bytes.data()).ok());
  EXPECT_EQ(bytes.Read(), expected) << codec.codec().name() << " of " << values.size();
  const uint8_t* const unchanged = reinterpret_cast<const uint8_t*>(values.data());
  EXPECT_EQ(device.Read(), std::vector<uint8_t>(unchanged, unchanged + values.size() * sizeof(T)));
}

struct Decoded {
  std::vector<uint8_t> values;  // their bytes
  bool damaged = false;
};

template <typename T>
Decoded DecodeOnDevice(Backend& backend, const DeviceCodec& codec,
                       const std::vector<uint8_t>& bytes, size_t count, size_t offset) {
  GuardedBytes encoded(backend, bytes.data(), bytes.size());
  GuardedBytes values(backend, std::vector<T>(count, T(1.5f)).data(), count * sizeof(T),
                      offset * sizeof(T));
  const uint32_t none = 0;
  GuardedBytes flag(backend, &none, sizeof none);
  Must(codec.Decode(encoded.data(),
                    DeviceSpan(absl::MakeSpan(static_cast<T*>(values.data()), count)),
                    static_cast<uint32_t*>(flag.data())));
  EXPECT_EQ(encoded.Read(), bytes);
  const std::vector<uint8_t> found = flag.Read();
  EXPECT_TRUE(found[0] <= 1 && found[1] == 0 && found[2] == 0 && found[3] == 0);
  return {values.Read(), found[0] == 1};
}

// Decodes block by block, since damage in one does not touch the others on cards.
template <typename T>
Decoded DecodeOnHost(const Codec& codec, const std::vector<uint8_t>& bytes, size_t count,
                     bool by_blocks) {
  Decoded decoded;
  const size_t step = by_blocks ? 256 : count;
  for (size_t i = 0; i < count; i += step) {
    std::vector<float> block(std::min(step, count - i));
    const absl::Span<const uint8_t> own = absl::MakeConstSpan(bytes).subspan(
        codec.EncodedSizeMax(i), codec.EncodedSizeMax(block.size()));
    if (!codec.Decode(own, absl::MakeSpan(block)).ok()) {
      decoded.damaged = true;
      block.assign(block.size(), std::numeric_limits<float>::quiet_NaN());
    }
    for (const float value : block) {
      const T rounded(value);
      const uint8_t* const first = reinterpret_cast<const uint8_t*>(&rounded);
      decoded.values.insert(decoded.values.end(), first, first + sizeof rounded);
    }
  }
  return decoded;
}

template <typename T>
void ExpectSameValues(Backend& backend, const DeviceCodec& codec, const std::vector<uint8_t>& bytes,
                      size_t count, size_t offset) {
  const Decoded actual = DecodeOnDevice<T>(backend, codec, bytes, count, offset);
  const Decoded expected =
      DecodeOnHost<T>(codec.codec(), bytes, count, backend.kind() == DeviceKind::kCuda);
  EXPECT_EQ(actual.damaged, expected.damaged) << codec.codec().name();
  EXPECT_EQ(actual.values, expected.values) << codec.codec().name() << " of " << count;
}

// Each backend with each codec that has a form on devices.
void OnEveryDevice(absl::FunctionRef<void(Backend&, const DeviceCodec&)> test) {
  for (const auto& backend : TestBackends()) {
    if (backend->threads() > 1) continue;
    for (const char* const name : {"none", "bf16", "int8"}) {
      test(*backend, DeviceCodec::Find(*backend, **compression::FindCodec(name)).value());
    }
  }
}

TEST(DeviceCodecTest, EncodesToTheSameBytes) {
  OnEveryDevice([](Backend& backend, const DeviceCodec& codec) {
    for (const std::vector<float>& values : AllInputs()) {
      for (const size_t offset : {0, 1}) {
        ExpectSameBytes<float>(backend, codec, values, offset);
        if (backend.kind() == DeviceKind::kCuda) {
          ExpectSameBytes<BFloat16>(backend, codec, values, offset);
        }
      }
    }
  });
}

TEST(DeviceCodecTest, DecodesToTheSameValues) {
  OnEveryDevice([](Backend& backend, const DeviceCodec& codec) {
    for (const std::vector<float>& values : AllInputs()) {
      const std::vector<uint8_t> bytes = Encoded(codec.codec(), values);
      for (const size_t offset : {0, 1}) {
        ExpectSameValues<float>(backend, codec, bytes, values.size(), offset);
        if (backend.kind() == DeviceKind::kCuda) {
          ExpectSameValues<BFloat16>(backend, codec, bytes, values.size(), offset);
        }
      }
    }
  });
}

// What one byte that is not as it was, or any bytes at all, decode to: never unnoticed where the
// host would notice.
TEST(DeviceCodecTest, NoticesWhatIsNeverWritten) {
  int damaged = 0;
  OnEveryDevice([&](Backend& backend, const DeviceCodec& codec) {
    const size_t count = 700;
    const std::vector<uint8_t> whole =
        Encoded(codec.codec(), std::vector<float>(TestFloats(count, 9)));
    for (uint64_t round = 0; round < 60; ++round) {
      std::vector<uint8_t> bytes = whole;
      if (round % 6 == 5) {
        for (size_t i = 0; i < bytes.size(); ++i)
          bytes[i] = static_cast<uint8_t>(RandomWord(round, i));
      } else {
        // The scales are the likeliest to matter.
        const size_t block = RandomWord(round, 0) % 3 * 260 % bytes.size();
        const size_t byte =
            round % 2 == 0 ? block + RandomWord(round, 1) % 4 : RandomWord(round, 2) % bytes.size();
        bytes[byte] = round % 3 == 0 ? 0x80 : static_cast<uint8_t>(RandomWord(round, 3));
      }
      damaged += DecodeOnHost<float>(codec.codec(), bytes, count, false).damaged;
      ExpectSameValues<float>(backend, codec, bytes, count, 0);
    }
  });
  EXPECT_GT(damaged, 20);
}

TEST(DeviceCodecTest, NothingIsNothing) {
  OnEveryDevice([](Backend& backend, const DeviceCodec& codec) {
    EXPECT_EQ(codec.EncodedSize(0), 0u);
    EXPECT_TRUE(codec.Encode(DeviceSpan(), nullptr).ok());
    EXPECT_TRUE(codec.Decode(nullptr, DeviceSpan(), nullptr).ok());
  });
}

TEST(DeviceCodecTest, HasNoFormOfCodecsWhoseSizeDependsOnValues) {
  const auto backend = MakeCpuBackend(1);
  EXPECT_FALSE(DeviceCodec::Find(*backend, **compression::FindCodec("zstd")).has_value());
}

TEST(DeviceCodecTest, RefusesDoubles) {
  OnEveryDevice([](Backend& backend, const DeviceCodec& codec) {
    const auto buffer = backend.Allocate(64).value();
    const DeviceSpan doubles(absl::MakeSpan(static_cast<double*>(buffer->data()), 4));
    EXPECT_TRUE(absl::IsInvalidArgument(codec.Encode(doubles, buffer->data())));
    EXPECT_TRUE(absl::IsInvalidArgument(codec.Decode(buffer->data(), doubles, nullptr)));
  });
}

}  // namespace
}  // namespace longhaul::compute
