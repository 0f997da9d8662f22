#include "compute/ops/softmax_cross_entropy.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

template <typename T>
class SoftmaxCrossEntropyTest : public ::testing::Test {};
TYPED_TEST_SUITE(SoftmaxCrossEntropyTest, ElementTypes);

template <typename T>
double Forward(Backend& backend, const SoftmaxCrossEntropyShape& shape, const Values& logits,
               const Values& targets) {
  GuardedBuffer<T> in(backend, logits);
  GuardedBuffer<int32_t> ids(backend, targets);
  double loss_sum = NAN;
  EXPECT_TRUE(SoftmaxCrossEntropyForward<T>(backend, shape, in.span(), ids.span(), &loss_sum).ok());
  EXPECT_TRUE(backend.Synchronize().ok());
  return loss_sum;
}

// Without what lies between rows, which must not have been written.
template <typename T>
Values Backward(Backend& backend, const SoftmaxCrossEntropyShape& shape, const Values& logits,
                const Values& targets) {
  GuardedBuffer<T> in(backend, logits);
  GuardedBuffer<int32_t> ids(backend, targets);
  auto gradient = GuardedBuffer<T>::Poisoned(backend, logits.size());
  EXPECT_TRUE(
      SoftmaxCrossEntropyBackward<T>(backend, shape, in.span(), ids.span(), gradient.span()).ok());
  // In place, as the executor calls it.
  EXPECT_TRUE(
      SoftmaxCrossEntropyBackward<T>(backend, shape, in.span(), ids.span(), in.span()).ok());
  const Values result = WithoutPitch(gradient.Read(), shape.vocab, shape.pitch());
  EXPECT_EQ(WithoutPitch(in.Read(), shape.vocab, shape.pitch()), result);
  return result;
}

TYPED_TEST(SoftmaxCrossEntropyTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("softmax_cross_entropy")) {
      SCOPED_TRACE(golden.name);
      const SoftmaxCrossEntropyShape shape{golden.size("rows"), golden.size("vocab")};
      const Values &logits = golden.tensor("logits"), &targets = golden.tensor("targets");
      EXPECT_LE(RelativeError({Forward<TypeParam>(*backend, shape, logits, targets)},
                              golden.tensor("loss_sum")),
                kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(Backward<TypeParam>(*backend, shape, logits, targets),
                              golden.tensor("logits_gradient")),
                kGoldenTolerance<TypeParam>);
    }
  }
}

TEST(SoftmaxCrossEntropyTest, GradientIsFiniteDifference) {
  const auto backend = MakeCpuBackend(1);
  const SoftmaxCrossEntropyShape shape{.rows = 4, .vocab = 19};
  const Values targets = {0, 18, -1, 7};
  Values logits = TestValues(76, 1);
  for (double& logit : logits) logit *= 3;
  const Values numerical = NumericalGradient(
      [&](const Values& x) { return Forward<double>(*backend, shape, x, targets); }, logits);
  EXPECT_LE(RelativeError(Backward<double>(*backend, shape, logits, targets), numerical),
            kDifferenceTolerance);
}

TYPED_TEST(SoftmaxCrossEntropyTest, RowsMayLieApart) {
  for (const SoftmaxCrossEntropyShape& shape :
       {SoftmaxCrossEntropyShape{4, 19, 64}, SoftmaxCrossEntropyShape{4, 19, 21},
        SoftmaxCrossEntropyShape{4, 2501, 2560}}) {
    const SoftmaxCrossEntropyShape dense{shape.rows, shape.vocab};
    const Values rows = Rounded<TypeParam>(TestValues(shape.rows * shape.vocab, 1));
    const Values apart = WithPitch(rows, shape.vocab, shape.pitch());
    const Values targets = {0, static_cast<double>(shape.vocab - 1), -1, 7};
    for (const auto& backend : TestBackends<TypeParam>()) {
      EXPECT_LE(RelativeError({Forward<TypeParam>(*backend, shape, apart, targets)},
                              {Forward<TypeParam>(*backend, dense, rows, targets)}),
                1e-6);
      EXPECT_LE(RelativeError(Backward<TypeParam>(*backend, shape, apart, targets),
                              Backward<TypeParam>(*backend, dense, rows, targets)),
                kGoldenTolerance<TypeParam>);
    }
  }
}

TYPED_TEST(SoftmaxCrossEntropyTest, IgnoredRowsCountNothing) {
  const auto backend = TestBackend<TypeParam>(1);
  const Values logits = {NAN, INFINITY, 1, 2};
  EXPECT_EQ(Forward<TypeParam>(*backend, {2, 2}, logits, {-1, -1}), 0);
  const auto gradient = Backward<TypeParam>(*backend, {2, 2}, TestValues(4, 1), {-1, -1});
  EXPECT_THAT(gradient, Each(0));
}

// The two ends of what softmax can say, where a naive exponential overflows or divides by zero.
TYPED_TEST(SoftmaxCrossEntropyTest, ExtremeLogits) {
  const auto backend = TestBackend<TypeParam>(1);
  EXPECT_EQ(Forward<TypeParam>(*backend, {1, 2}, {8192, -8192}, {0}), 0);
  EXPECT_EQ(Forward<TypeParam>(*backend, {1, 2}, {8192, -8192}, {1}), 16384);
  EXPECT_EQ(Backward<TypeParam>(*backend, {1, 2}, {8192, -8192}, {1}), (Values{1, -1}));
  EXPECT_EQ(Forward<TypeParam>(*backend, {1, 1}, {-8192}, {0}), 0);
  EXPECT_EQ(Backward<TypeParam>(*backend, {1, 1}, {-8192}, {0}), Values{0});
}

TYPED_TEST(SoftmaxCrossEntropyTest, NotANumberIsNotHidden) {
  const auto backend = TestBackend<TypeParam>(1);
  EXPECT_TRUE(std::isnan(Forward<TypeParam>(*backend, {2, 2}, {0, NAN, 1, 2}, {0, 0})));
  EXPECT_TRUE(std::isnan(Forward<TypeParam>(*backend, {1, 2}, {0, INFINITY}, {0})));
}

// As many rows and columns as a large vocabulary: uniform logits lose log(vocab) a row.
TEST(SoftmaxCrossEntropyTest, LongRowsStayAccurate) {
  const auto backend = MakeCpuBackend(2);
  const SoftmaxCrossEntropyShape shape{.rows = 3, .vocab = 50257};
  const Values logits(static_cast<size_t>(shape.rows * shape.vocab), 0.3);
  const Values targets = {0, 50256, 77};
  EXPECT_NEAR(Forward<float>(*backend, shape, logits, targets), 3 * std::log(50257.0), 1e-9);
  const Values gradient = Backward<float>(*backend, shape, logits, targets);
  EXPECT_NEAR(gradient[1] * 50257, 1, 1e-6);
}

TYPED_TEST(SoftmaxCrossEntropyTest, ThreadsDoNotMatter) {
  // More rows than wait for their sum at once, and rows longer than a stretch.
  for (const SoftmaxCrossEntropyShape& shape :
       {SoftmaxCrossEntropyShape{1501, 37}, SoftmaxCrossEntropyShape{21, 2500}}) {
    const Values logits = TestValues(shape.rows * shape.vocab, 1);
    const Values targets(static_cast<size_t>(shape.rows), 5);
    ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
      return std::vector<Values>{{Forward<TypeParam>(backend, shape, logits, targets)},
                                 Backward<TypeParam>(backend, shape, logits, targets)};
    });
  }
}

TEST(SoftmaxCrossEntropyTest, RefusesTargetsOutsideTheVocabulary) {
  const auto backend = MakeCpuBackend(1);
  float logits[6] = {};
  for (const int32_t bad : {3, -2}) {
    const int32_t targets[] = {2, bad};
    double loss_sum = 7;
    absl::Status status =
        SoftmaxCrossEntropyForward<float>(*backend, {2, 3}, logits, targets, &loss_sum);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("of row 1 is outside"));
    EXPECT_EQ(loss_sum, 7);
    status = SoftmaxCrossEntropyBackward<float>(*backend, {2, 3}, logits, targets,
                                                absl::MakeSpan(logits));
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(logits, Each(0));
  }
}

TEST(SoftmaxCrossEntropyTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  const float logits[6] = {};
  const int32_t targets[2] = {};
  double loss_sum = 0;
  for (const SoftmaxCrossEntropyShape& shape :
       {SoftmaxCrossEntropyShape{3, 2}, SoftmaxCrossEntropyShape{2, 2},
        SoftmaxCrossEntropyShape{0, 3}, SoftmaxCrossEntropyShape{2, 0},
        SoftmaxCrossEntropyShape{2, 3, 4}, SoftmaxCrossEntropyShape{3, 3, 2}}) {
    EXPECT_EQ(SoftmaxCrossEntropyForward<float>(*backend, shape, logits, targets, &loss_sum).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace longhaul::compute
