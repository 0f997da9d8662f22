#include "compute/ops/dropout.h"

#include <cmath>

#include "base/rng.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class DropoutTest : public ::testing::Test {};
TYPED_TEST_SUITE(DropoutTest, ElementTypes);

template <typename T>
Values Dropped(Backend& backend, const DropoutShape& shape, const DropoutKey& key,
               const Values& input) {
  GuardedBuffer<T> in(backend, input);
  auto output = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(Dropout<T>(backend, shape, key, in.span(), output.span()).ok());
  // In place.
  EXPECT_TRUE(Dropout<T>(backend, shape, key, in.span(), in.span()).ok());
  EXPECT_EQ(output.Read(), in.Read());
  return output.Read();
}

// Element by element, from the definition in dropout.h.
template <typename T>
Values Expected(const DropoutShape& shape, const DropoutKey& key, const Values& input) {
  const uint64_t elements = static_cast<uint64_t>(shape.context * shape.width);
  Values output(input.size());
  for (uint64_t i = 0; i < input.size(); ++i) {
    const uint64_t sequence = static_cast<uint64_t>(key.first_sequence) + i / elements;
    const uint64_t e = i % elements;
    const uint32_t word = RandomBits(key.seed, RandomStream::kDropout,
                                     static_cast<uint32_t>(key.step), static_cast<uint32_t>(key.op),
                                     (sequence << 32) + e / 64 * 16 + e % 16)[e / 16 % 4];
    const bool dropped = word < std::round(shape.probability * 0x1p32);
    const Wide<T> scale = static_cast<Wide<T>>(1 / (1 - shape.probability));
    output[i] = dropped ? 0 : static_cast<Wide<T>>(static_cast<T>(input[i])) * scale;
  }
  return Rounded<T>(output);
}

TYPED_TEST(DropoutTest, IsItsDefinition) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const DropoutShape& shape :
         {DropoutShape{3, 1, 1, 0.5}, DropoutShape{6, 3, 41, 0.1}, DropoutShape{2, 2, 32, 0.25},
          DropoutShape{14, 7, 5000, 0.9}, DropoutShape{4, 2, 70, 0}}) {
      const DropoutKey key{
          .seed = 0x123456789abcdefULL, .step = 0xfffffffe, .first_sequence = 0xfffffff0, .op = 77};
      const Values input = TestValues(shape.rows * shape.width, 1);
      EXPECT_EQ(Dropped<TypeParam>(*backend, shape, key, input),
                Expected<TypeParam>(shape, key, input));
    }
  }
}

TYPED_TEST(DropoutTest, DropsTheShareThatWasAskedFor) {
  const auto backend = TestBackend<TypeParam>(1);
  const Values ones(300'000, 1);
  for (const double probability : {0.0, 0.1, 0.5, 0.97}) {
    const Values output =
        Dropped<TypeParam>(*backend, {300, 100, 1000, probability}, {.seed = 1}, ones);
    double dropped = 0, sum = 0;
    for (const double value : output) {
      dropped += value == 0;
      sum += value;
    }
    const double deviation = std::sqrt(probability * (1 - probability) / 300'000);
    EXPECT_NEAR(dropped / 300'000, probability, 4 * deviation);
    EXPECT_NEAR(sum / 300'000, 1, 4 * deviation / (1 - probability) + kGoldenTolerance<TypeParam>);
  }
}

// Each part of the key matters; a micro-batch is a part of a batch.
TYPED_TEST(DropoutTest, MaskIsAFunctionOfThePlace) {
  const auto backend = TestBackend<TypeParam>(1);
  const Values ones(4 * 5 * 60, 1);
  const DropoutShape shape{20, 5, 60, 0.5};
  const DropoutKey key{.seed = 1, .step = 2, .first_sequence = 3, .op = 4};
  const Values whole = Dropped<TypeParam>(*backend, shape, key, ones);
  for (const DropoutKey& other : {DropoutKey{5, 2, 3, 4}, DropoutKey{1, 5, 3, 4},
                                  DropoutKey{1, 2, 5, 4}, DropoutKey{1, 2, 3, 5}}) {
    EXPECT_NE(Dropped<TypeParam>(*backend, shape, other, ones), whole);
  }
  DropoutKey second_half = key;
  second_half.first_sequence += 2;
  EXPECT_EQ(Dropped<TypeParam>(*backend, {10, 5, 60, 0.5}, second_half, Values(600, 1)),
            Values(whole.begin() + 600, whole.end()));
}

TYPED_TEST(DropoutTest, ThreadsDoNotMatter) {
  const DropoutShape shape{.rows = 202, .context = 101, .width = 397, .probability = 0.3};
  const Values input = TestValues(shape.rows * shape.width, 1);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    return std::vector<Values>{Dropped<TypeParam>(backend, shape, {.seed = 3}, input)};
  });
}

TEST(DropoutTest, RefusesBadArguments) {
  const auto backend = MakeCpuBackend(1);
  float values[6] = {};
  const auto run = [&](const DropoutShape& shape, const DropoutKey& key) {
    return Dropout<float>(*backend, shape, key, values, absl::MakeSpan(values)).code();
  };
  EXPECT_EQ(run({2, 1, 3, 0.5}, {}), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 1, 2, 0.5}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 2, 0.5}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, 1}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, -0.1}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, NAN}, {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, 0.5}, {.step = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, 0.5}, {.op = int64_t{1} << 32}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 1, 3, 0.5}, {.first_sequence = 0xffffffff}),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
