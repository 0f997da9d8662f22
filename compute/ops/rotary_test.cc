#include "compute/ops/rotary.h"

#include <cmath>

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"

namespace longhaul::compute {
namespace {

template <typename T>
class RotaryTest : public ::testing::Test {};
TYPED_TEST_SUITE(RotaryTest, ElementTypes);

template <typename T>
Values Table(Backend& backend, const RotarySpec& spec) {
  auto table = GuardedBuffer<Wide<T>>::Poisoned(
      backend, static_cast<size_t>(spec.context * spec.head_width));
  EXPECT_TRUE(RotaryTable<T>(backend, spec, table.span()).ok());
  return table.Read();
}

template <typename T>
using Operator = absl::Status (*)(Backend&, const RotaryShape&, absl::Span<const Wide<T>>,
                                  absl::Span<const T>, absl::Span<T>);

template <typename T>
Values Turned(Backend& backend, const RotaryShape& shape, const Values& table, const Values& input,
              Operator<T> rotary) {
  GuardedBuffer<Wide<T>> angles(backend, table);
  GuardedBuffer<T> in(backend, input);
  auto output = GuardedBuffer<T>::Poisoned(backend, input.size());
  EXPECT_TRUE(rotary(backend, shape, angles.span(), in.span(), output.span()).ok());
  // In place.
  EXPECT_TRUE(rotary(backend, shape, angles.span(), in.span(), in.span()).ok());
  EXPECT_EQ(output.Read(), in.Read());
  return output.Read();
}

RotarySpec SpecOf(const GoldenCase& golden) {
  RotarySpec spec{golden.size("context"), golden.size("head_width"), golden.number("theta"), {}};
  if (golden.number("factor") != 1) {
    spec.scaling = {golden.number("factor"), golden.number("low_frequency_factor"),
                    golden.number("high_frequency_factor"), golden.size("original_context")};
  }
  return spec;
}

TYPED_TEST(RotaryTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("rotary")) {
      SCOPED_TRACE(golden.name);
      const RotarySpec spec = SpecOf(golden);
      const RotaryShape shape{golden.size("rows"), spec.context, golden.size("heads"),
                              spec.head_width, golden.size("row_width")};
      const Values table = Table<TypeParam>(*backend, spec);
      EXPECT_LE(RelativeError(table, golden.tensor("table")), kGoldenTolerance<Wide<TypeParam>>);
      EXPECT_LE(RelativeError(Turned<TypeParam>(*backend, shape, table, golden.tensor("input"),
                                                &RotaryForward<TypeParam>),
                              golden.tensor("output")),
                kGoldenTolerance<TypeParam>);
      EXPECT_LE(
          RelativeError(Turned<TypeParam>(*backend, shape, table, golden.tensor("output_gradient"),
                                          &RotaryBackward<TypeParam>),
                        golden.tensor("input_gradient")),
          kGoldenTolerance<TypeParam>);
    }
  }
}

TEST(RotaryTest, GradientIsFiniteDifference) {
  const auto backend = MakeCpuBackend(1);
  const RotaryShape shape{.rows = 6, .context = 3, .heads = 2, .head_width = 4, .row_width = 11};
  const Values table =
      Table<double>(*backend, {.context = 3, .head_width = 4, .theta = 100, .scaling = {}});
  const Values input = TestValues(66, 1), weights = TestValues(66, 2);
  const Values numerical = NumericalGradient(
      [&](const Values& x) {
        return DotProduct(Turned<double>(*backend, shape, table, x, &RotaryForward<double>),
                          weights);
      },
      input);
  EXPECT_LE(RelativeError(Turned<double>(*backend, shape, table, weights, &RotaryBackward<double>),
                          numerical),
            kDifferenceTolerance);
}

TYPED_TEST(RotaryTest, ThreadsDoNotMatter) {
  const RotaryShape shape{
      .rows = 202, .context = 101, .heads = 5, .head_width = 38, .row_width = 300};
  const Values input = TestValues(shape.rows * shape.row_width, 1);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    const Values table =
        Table<TypeParam>(backend, {.context = 101, .head_width = 38, .scaling = {}});
    return std::vector<Values>{
        table, Turned<TypeParam>(backend, shape, table, input, &RotaryForward<TypeParam>),
        Turned<TypeParam>(backend, shape, table, input, &RotaryBackward<TypeParam>)};
  });
}

// Far from the origin the angle has to be right to the last bit, unlike its distance from there.
TEST(RotaryTest, FarPositionsAreTurnedByTheWholeAngle) {
  const auto backend = MakeCpuBackend(1);
  const RotarySpec spec{.context = 131072, .head_width = 4, .theta = 500000, .scaling = {}};
  const Values table = Table<double>(*backend, spec);
  for (const int64_t position : {1, 1000, 65537, 131071}) {
    const long double angles[] = {1.0L * position, position / std::sqrt(500000.0L)};
    for (const int64_t pair : {0, 1}) {
      const size_t at = static_cast<size_t>(4 * position + pair);
      EXPECT_NEAR(table[at], static_cast<double>(std::cos(angles[pair])), 1e-13) << position;
      EXPECT_NEAR(table[at + 2], static_cast<double>(std::sin(angles[pair])), 1e-13) << position;
    }
  }
}

TEST(RotaryTest, RefusesBadSpecifications) {
  const auto backend = MakeCpuBackend(1);
  float table[8] = {};
  const auto run = [&](const RotarySpec& spec) {
    return RotaryTable<float>(*backend, spec, absl::MakeSpan(table)).code();
  };
  EXPECT_EQ(run({2, 4, 10, {}}), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 2, 10, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({8, 1, 10, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 0, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, NAN, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 1e300, {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 10, {.factor = 1e300}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 10, {.factor = 0.5}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 10, {.low_frequency_factor = 4}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 10, {.low_frequency_factor = NAN}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 4, 10, {.original_context = 0}}), absl::StatusCode::kInvalidArgument);
}

TEST(RotaryTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float table[8] = {}, rows[12] = {};
  const auto run = [&](const RotaryShape& shape) {
    return RotaryForward<float>(*backend, shape, table, rows, absl::MakeSpan(rows)).code();
  };
  EXPECT_EQ(run({2, 2, 1, 4, 6}), absl::StatusCode::kOk);
  EXPECT_EQ(run({2, 2, 2, 4, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 2, 1, 3, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 1, 4, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 2, 1, 4, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 2, 0, 4, 6}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longhaul::compute
