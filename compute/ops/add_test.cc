#include "compute/ops/add.h"

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::HasSubstr;

template <typename T>
class AddTest : public ::testing::Test {};
TYPED_TEST_SUITE(AddTest, ElementTypes);

template <typename T>
Values Run(Backend& backend, const Values& a, const Values& b) {
  GuardedBuffer<T> a_buffer(backend, a), b_buffer(backend, b);
  auto output = GuardedBuffer<T>::Poisoned(backend, a.size());
  EXPECT_TRUE(Add<T>(backend, a_buffer.span(), b_buffer.span(), output.span()).ok());
  return output.Read();
}

TYPED_TEST(AddTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("add")) {
      const Values a = golden.tensor("a"), b = golden.tensor("b");
      EXPECT_LE(RelativeError(Run<TypeParam>(*backend, a, b), golden.tensor("output")),
                kGoldenTolerance<TypeParam>);
      // One rounding, of the exact sum.
      Values sums = Rounded<TypeParam>(a);
      const Values addends = Rounded<TypeParam>(b);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += addends[i];
      EXPECT_EQ(Run<TypeParam>(*backend, a, b), Rounded<TypeParam>(sums));
    }
  }
}

TYPED_TEST(AddTest, OutputMayBeAnInput) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    const Values a = TestValues(35, 1), b = TestValues(35, 2);
    const Values expected = Run<TypeParam>(*backend, a, b);
    GuardedBuffer<TypeParam> first(*backend, a), second(*backend, b);
    ASSERT_TRUE(Add<TypeParam>(*backend, first.span(), second.span(), first.span()).ok());
    EXPECT_EQ(first.Read(), expected);
  }
}

TYPED_TEST(AddTest, Empty) {
  for (const auto& backend : TestBackends<TypeParam>())
    EXPECT_TRUE(Run<TypeParam>(*backend, {}, {}).empty());
}

TYPED_TEST(AddTest, ThreadsDoNotMatter) {
  const Values a = TestValues(100003, 1), b = TestValues(100003, 2);
  ExpectThreadsAgree<TypeParam>(
      [&](Backend& backend) { return std::vector<Values>{Run<TypeParam>(backend, a, b)}; });
}

TEST(AddTest, RefusesUnequalSpans) {
  const auto backend = MakeCpuBackend(1);
  float a[3] = {}, b[2] = {}, output[3] = {};
  const absl::Status status = Add<float>(*backend, a, b, absl::MakeSpan(output));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("b has 2 elements"));
}

}  // namespace
}  // namespace longhaul::compute
