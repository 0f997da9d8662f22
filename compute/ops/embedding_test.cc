#include "compute/ops/embedding.h"

#include "compute/testing/golden.h"
#include "compute/testing/guarded_buffer.h"
#include "compute/testing/op_testing.h"
#include "gmock/gmock.h"

namespace longhaul::compute {
namespace {

using ::testing::HasSubstr;

template <typename T>
class EmbeddingTest : public ::testing::Test {};
TYPED_TEST_SUITE(EmbeddingTest, ElementTypes);

template <typename T>
Values Forward(Backend& backend, const EmbeddingShape& shape, const Values& tokens,
               const Values& table, const Values& positions) {
  GuardedBuffer<int32_t> ids(backend, tokens);
  GuardedBuffer<T> rows(backend, table), offsets(backend, positions);
  auto output = GuardedBuffer<T>::Poisoned(backend, static_cast<size_t>(shape.rows * shape.width));
  EXPECT_TRUE(
      EmbeddingForward<T>(backend, shape, ids.span(), rows.span(), offsets.span(), output.span())
          .ok());
  return output.Read();
}

struct Gradients {
  Values table, positions;
};

// Adds to accumulators that start at `start`.
template <typename T>
Gradients Backward(Backend& backend, const EmbeddingShape& shape, const Values& tokens,
                   const Values& output_gradient, double start, bool positioned = true) {
  GuardedBuffer<int32_t> ids(backend, tokens);
  GuardedBuffer<T> gradient(backend, output_gradient);
  GuardedBuffer<Wide<T>> table(backend,
                               Values(static_cast<size_t>(shape.vocab * shape.width), start));
  const int64_t position_elements = positioned ? shape.context * shape.width : 0;
  GuardedBuffer<Wide<T>> positions(backend, Values(static_cast<size_t>(position_elements), start));
  EXPECT_TRUE(EmbeddingBackward<T>(backend, shape, ids.span(), gradient.span(), table.span(),
                                   positions.span())
                  .ok());
  return {table.Read(), positions.Read()};
}

EmbeddingShape ShapeOf(const GoldenCase& golden) {
  return {golden.size("rows"), golden.size("context"), golden.size("vocab"), golden.size("width")};
}

TYPED_TEST(EmbeddingTest, Golden) {
  for (const auto& backend : TestBackends<TypeParam>()) {
    for (const GoldenCase& golden : LoadGolden("embedding")) {
      SCOPED_TRACE(golden.name);
      const EmbeddingShape shape = ShapeOf(golden);
      const Values positions = golden.optional_tensor("positions");
      const Values& tokens = golden.tensor("tokens");
      const Values& table = golden.tensor("table");
      // One rounding, of the sum of what TypeParam holds.
      const Values expected = kHasCpuKernels<TypeParam>
                                  ? golden.tensor("output")
                                  : Rounded<TypeParam>(Forward<double>(
                                        *MakeCpuBackend(1), shape, tokens,
                                        Rounded<TypeParam>(table), Rounded<TypeParam>(positions)));
      EXPECT_EQ(Forward<TypeParam>(*backend, shape, tokens, table, positions), expected);
      const Gradients gradients =
          Backward<TypeParam>(*backend, shape, golden.tensor("tokens"),
                              golden.tensor("output_gradient"), 0, !positions.empty());
      EXPECT_LE(RelativeError(gradients.table, golden.tensor("table_gradient")),
                kGoldenTolerance<TypeParam>);
      EXPECT_LE(RelativeError(gradients.positions, golden.optional_tensor("positions_gradient")),
                kGoldenTolerance<TypeParam>);
    }
  }
}

TYPED_TEST(EmbeddingTest, GradientsAreAdded) {
  const auto backend = TestBackend<TypeParam>(1);
  const EmbeddingShape shape{.rows = 1, .context = 1, .vocab = 2, .width = 3};
  const Gradients gradients = Backward<TypeParam>(*backend, shape, {1}, {1, 2, 3}, 10);
  EXPECT_EQ(gradients.table, (Values{10, 10, 10, 11, 12, 13}));
  EXPECT_EQ(gradients.positions, (Values{11, 12, 13}));
}

TEST(EmbeddingTest, GradientsAreFiniteDifferences) {
  const auto backend = MakeCpuBackend(1);
  const EmbeddingShape shape{.rows = 6, .context = 3, .vocab = 4, .width = 2};
  const Values tokens = {0, 2, 2, 3, 2, 0};
  const Values table = TestValues(8, 1), positions = TestValues(6, 2), weights = TestValues(12, 3);
  const Gradients gradients = Backward<double>(*backend, shape, tokens, weights, 0);
  const auto table_numerical = NumericalGradient(
      [&](const Values& x) {
        return DotProduct(Forward<double>(*backend, shape, tokens, x, positions), weights);
      },
      table);
  const auto positions_numerical = NumericalGradient(
      [&](const Values& x) {
        return DotProduct(Forward<double>(*backend, shape, tokens, table, x), weights);
      },
      positions);
  EXPECT_LE(RelativeError(gradients.table, table_numerical), kDifferenceTolerance);
  EXPECT_LE(RelativeError(gradients.positions, positions_numerical), kDifferenceTolerance);
}

// More rows than a block of a card looks at together; frequent tokens, rare ones, and unused ones.
TYPED_TEST(EmbeddingTest, GradientsOverManyRows) {
  const EmbeddingShape shape{.rows = 808, .context = 101, .vocab = 300, .width = 19};
  const size_t width = static_cast<size_t>(shape.width);
  Values tokens = TestValues(shape.rows, 1);
  for (double& token : tokens) token = static_cast<int>(token * token * token * token * 300);
  const Values gradient = Rounded<TypeParam>(TestValues(shape.rows * shape.width, 4));
  Values table(static_cast<size_t>(shape.vocab) * width, 0.5);
  Values positions(static_cast<size_t>(shape.context) * width, 0.5);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const size_t row = i / width;
    table[static_cast<size_t>(tokens[row]) * width + i % width] += gradient[i];
    positions[row % static_cast<size_t>(shape.context) * width + i % width] += gradient[i];
  }
  for (const auto& backend : TestBackends<TypeParam>()) {
    const Gradients gradients = Backward<TypeParam>(*backend, shape, tokens, gradient, 0.5);
    EXPECT_LE(RelativeError(gradients.table, table), kGoldenTolerance<Wide<TypeParam>>);
    EXPECT_LE(RelativeError(gradients.positions, positions), kGoldenTolerance<Wide<TypeParam>>);
  }
}

TYPED_TEST(EmbeddingTest, ThreadsDoNotMatter) {
  const EmbeddingShape shape{.rows = 303, .context = 101, .vocab = 5, .width = 197};
  Values tokens = TestValues(shape.rows, 1);
  for (double& token : tokens) token = static_cast<int>((token + 1) * 2.5);
  const Values table = TestValues(shape.vocab * shape.width, 2);
  const Values positions = TestValues(shape.context * shape.width, 3);
  const Values gradient = TestValues(shape.rows * shape.width, 4);
  ExpectThreadsAgree<TypeParam>([&](Backend& backend) {
    const Gradients gradients = Backward<TypeParam>(backend, shape, tokens, gradient, 0.5);
    return std::vector<Values>{Forward<TypeParam>(backend, shape, tokens, table, positions),
                               gradients.table, gradients.positions};
  });
}

TEST(EmbeddingTest, RefusesTokensOutsideTheVocabulary) {
  const auto backend = MakeCpuBackend(1);
  const EmbeddingShape shape{.rows = 3, .context = 3, .vocab = 2, .width = 1};
  float table[2] = {}, rows[3] = {7, 7, 7}, positions[3] = {};
  for (const int32_t bad : {2, -1}) {
    const int32_t tokens[] = {0, bad, 1};
    absl::Status status =
        EmbeddingForward<float>(*backend, shape, tokens, table, positions, absl::MakeSpan(rows));
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), HasSubstr("of row 1 is outside"));
    status = EmbeddingBackward<float>(*backend, shape, tokens, rows, absl::MakeSpan(table),
                                      absl::MakeSpan(positions));
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(rows, ::testing::Each(7));
    EXPECT_THAT(table, ::testing::Each(0));
  }
}

TEST(EmbeddingTest, RefusesWrongShapes) {
  const auto backend = MakeCpuBackend(1);
  float table[2] = {}, rows[3] = {}, positions[3] = {};
  const int32_t tokens[] = {0, 0, 0};
  for (const EmbeddingShape& shape :
       {EmbeddingShape{3, 3, 2, 2}, EmbeddingShape{3, 2, 2, 1}, EmbeddingShape{3, 3, 3, 1},
        EmbeddingShape{2, 3, 2, 1}, EmbeddingShape{3, 3, 2, 0}, EmbeddingShape{-3, 3, 2, 1}}) {
    EXPECT_EQ(
        EmbeddingForward<float>(*backend, shape, tokens, table, positions, absl::MakeSpan(rows))
            .code(),
        absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace longhaul::compute
